// Which package may import which; production never imports a test kit. tools/layers.test.ts plants
// violations to prove that these rules bite.
const pkg = (name) => `^packages/${name}/`;
const mayImport = {
  model: [],
  protocol: ["model"],
  ownership: ["model", "protocol"],
  "store-sqlite": ["model", "ownership"],
  coordinator: ["model", "protocol", "ownership"],
  "envoy-api": ["model"],
  xds: ["model", "envoy-api"],
  "control-plane": ["model", "protocol", "envoy-api", "xds"],
  "server-sdk": ["model", "protocol", "ownership"],
  simulator: ["model", "protocol", "ownership"],
  testkit: ["model", "protocol", "ownership"],
  belay: [
    "model",
    "protocol",
    "ownership",
    "store-sqlite",
    "coordinator",
    "envoy-api",
    "xds",
    "control-plane",
    "server-sdk",
  ],
};

export default {
  forbidden: [
    { name: "no-cycle", severity: "error", from: {}, to: { circular: true } },
    ...Object.entries(mayImport).map(([name, allowed]) => ({
      name: `layer-${name}`,
      severity: "error",
      from: { path: pkg(name), pathNot: "\\.test\\.ts$" },
      to: { path: "^packages/", pathNot: [name, ...allowed].map(pkg) },
    })),
    {
      name: "examples-use-the-sdk-only",
      severity: "error",
      from: { path: "^examples/", pathNot: "\\.test\\.ts$" },
      to: { path: "^packages/", pathNot: [pkg("server-sdk")] },
    },
  ],
  options: {
    parser: "swc",
    doNotFollow: { path: "node_modules|dist" },
    exclude: { path: "(^|/)(dist|node_modules)/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["belay-source", "import", "default"],
      extensions: [".ts", ".js"],
    },
  },
};
