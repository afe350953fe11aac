/** Envoy looks for lib<name>.so in ENVOY_DYNAMIC_MODULES_SEARCH_PATH: so a path is each machine's own. */
export const MODULE_NAME = "belay";
