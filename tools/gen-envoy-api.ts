// Generates packages/envoy-api/src/gen from the committed descriptor set: the files named below and
// what they import. With --check: fails if the committed files differ. Needs no Go, protoc or buf.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  CodeGeneratorRequestSchema,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
  type FileDescriptorProto,
} from "@bufbuild/protobuf/wkt";

/** Only what code names: every file here costs start-up time of whatever imports it. */
const roots = [
  "config/cluster/v3/cluster",
  "config/endpoint/v3/endpoint",
  "config/listener/v3/listener",
  "config/route/v3/route",
  "extensions/access_loggers/stream/v3/stream",
  "extensions/filters/http/dynamic_modules/v3/dynamic_modules",
  "extensions/filters/http/router/v3/router",
  "extensions/filters/http/upstream_codec/v3/upstream_codec",
  "extensions/filters/network/http_connection_manager/v3/http_connection_manager",
  "extensions/load_balancing_policies/dynamic_modules/v3/dynamic_modules",
  "extensions/load_balancing_policies/round_robin/v3/round_robin",
  "extensions/upstreams/http/v3/http_protocol_options",
  "service/discovery/v3/discovery",
].map((path) => `envoy/${path}.proto`);

const root = new URL("..", import.meta.url).pathname;
const target = join(root, "packages/envoy-api/src/gen");
const descriptors = join(root, "packages/envoy-api/envoy-api-1.40.0.binpb.gz");

const withImports = (files: readonly FileDescriptorProto[]): FileDescriptorProto[] => {
  const byName = new Map(files.map((file) => [file.name, file]));
  const wanted = new Set<string>();
  const visit = (name: string): void => {
    const file = byName.get(name);
    if (file === undefined) throw new Error(`${descriptors} has no file ${name}`);
    if (wanted.has(name)) return;
    wanted.add(name);
    for (const imported of file.dependency) visit(imported);
  };
  for (const name of roots) visit(name);
  return files.filter((file) => wanted.has(file.name));
};

const generate = (): Map<string, string> => {
  const set = fromBinary(FileDescriptorSetSchema, gunzipSync(readFileSync(descriptors)));
  const protoFile = withImports(set.file);
  const request = create(CodeGeneratorRequestSchema, {
    protoFile,
    // protobuf-es brings the well-known types itself.
    fileToGenerate: protoFile
      .map((file) => file.name)
      .filter((name) => !name.startsWith("google/protobuf/")),
    parameter: "target=ts,import_extension=ts,erasable_syntax=true",
  });
  const run = spawnSync(process.execPath, [join(root, "node_modules/.bin/protoc-gen-es")], {
    input: toBinary(CodeGeneratorRequestSchema, request),
    maxBuffer: 1 << 28,
  });
  if (run.status !== 0) throw new Error(`protoc-gen-es failed: ${run.stderr.toString()}`);
  const response = fromBinary(CodeGeneratorResponseSchema, run.stdout);
  if (response.error) throw new Error(`protoc-gen-es: ${response.error}`);
  return new Map(response.file.map((file) => [file.name, file.content]));
};

const committed = (): Map<string, string> =>
  new Map(
    readdirSync(target, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return [path.slice(target.length + 1), readFileSync(path, "utf8")];
      }),
  );

const fresh = generate();
if (process.argv.includes("--check")) {
  const old = committed();
  const stale = [...new Set([...fresh.keys(), ...old.keys()])].filter(
    (name) => fresh.get(name) !== old.get(name),
  );
  if (stale.length > 0) {
    process.stderr.write(`stale, run \`npm run gen\`: ${stale.join(", ")}\n`);
    process.exitCode = 1;
  }
} else {
  rmSync(target, { recursive: true, force: true });
  for (const [name, content] of fresh) {
    mkdirSync(dirname(join(target, name)), { recursive: true });
    writeFileSync(join(target, name), content);
  }
}
