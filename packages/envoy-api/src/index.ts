export { packAny, packString } from "./any.ts";
export { decodeEnvoy, encodeEnvoy, fromEnvoyJson, toEnvoyJson } from "./json.ts";
export { envoyRegistry, envoyVersion } from "./registry.ts";
export { typeName, typeUrl, typeUrls } from "./type-url.ts";
