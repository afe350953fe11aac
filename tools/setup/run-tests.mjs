// The tests of `npm test`, after the set-up: unit tests in one process, Rust tests, then the tests
// that start processes and Envoy, and one closing line that adds everything up.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parsePlan, selectTests, USAGE } from "./test-plan.mjs";

const ROOT = join(import.meta.dirname, "../..");
const UNIT_TIMEOUT_MS = 60_000;
const PROCESS_TIMEOUT_MS = 300_000;
const inCi = process.env.CI === "true" || process.env.CI === "1";
const total = { passed: 0, failed: 0, skipped: 0, failures: [], unmet: [] };

/** Runs a command with our terminal; resolves with its exit code. `tap` also sees its output. */
function runShown(command, args, tap) {
  return new Promise((resolve, reject) => {
    const stdio = ["ignore", tap === undefined ? "inherit" : "pipe", "inherit"];
    const env = { ...process.env, NODE_OPTIONS: "--conditions=belay-source" };
    const child = spawn(command, args, { cwd: ROOT, env, stdio });
    child.stdout?.setEncoding("utf8").on("data", (chunk) => {
      process.stdout.write(chunk);
      tap(chunk);
    });
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 1));
  });
}

function add(counts) {
  for (const key of ["passed", "failed", "skipped"]) total[key] += counts[key];
  total.failures.push(...counts.failures);
  total.unmet.push(...counts.unmet);
}

async function runNodeTests(title, files, flags) {
  if (files.length === 0) return;
  console.log(`\n── ${title}: ${files.length} files`);
  const folder = mkdtempSync(join(tmpdir(), "belay-test-"));
  const result = join(folder, "counts.json");
  const reporters = [
    `--test-reporter=${process.stdout.isTTY ? "dot" : "spec"}`,
    "--test-reporter-destination=stdout",
    `--test-reporter=${join(import.meta.dirname, "count-reporter.mjs")}`,
    `--test-reporter-destination=${result}`,
  ];
  const code = await runShown(process.execPath, ["--test", ...flags, ...reporters, ...files]);
  let counts = { passed: 0, failed: 0, skipped: 0, failures: [], unmet: [] };
  try {
    counts = JSON.parse(readFileSync(result, "utf8"));
  } catch {
    // The run died before it could report: counted below by its exit code.
  }
  rmSync(folder, { recursive: true, force: true });
  if (code !== 0 && counts.failed === 0) {
    counts.failed = 1;
    counts.failures.push(`${title}: ended with exit code ${code}`);
  }
  add(counts);
}

async function runRustTests() {
  console.log("\n── Rust tests");
  let output = "";
  const args = ["test", "--manifest-path", "native/Cargo.toml", "--locked", "--no-fail-fast"];
  const code = await runShown("cargo", args, (chunk) => (output += chunk));
  const counts = { passed: 0, failed: 0, skipped: 0, failures: [], unmet: [] };
  for (const match of output.matchAll(/(\d+) passed; (\d+) failed; (\d+) ignored/g)) {
    counts.passed += Number(match[1]);
    counts.failed += Number(match[2]);
    counts.skipped += Number(match[3]);
  }
  for (const match of output.matchAll(/^test (\S+) \.\.\. FAILED$/gm)) {
    counts.failures.push(`rust: ${match[1]}`);
  }
  if (code !== 0 && counts.failed === 0) {
    counts.failed = 1;
    counts.failures.push(`cargo test: ended with exit code ${code}`);
  }
  add(counts);
}

/** What a machine lacks is a skip for a person and a failure for CI, which must have everything. */
function settleUnmet() {
  if (total.unmet.length === 0) return;
  console.log("");
  for (const line of total.unmet) console.log(inCi ? `FAILED in CI: ${String(line)}` : line);
  if (!inCi) return;
  total.skipped -= total.unmet.length;
  total.failed += total.unmet.length;
}

async function main(args) {
  const plan = parsePlan(args);
  const chosen = selectTests(ROOT, plan.only);
  if (plan.help || plan.list) {
    const list = [...chosen.unit, ...(chosen.rust ? ["rust"] : []), ...chosen.process];
    console.log(plan.help ? USAGE : list.join("\n"));
    return 0;
  }
  if (chosen.unit.length + chosen.process.length === 0 && !chosen.rust) {
    console.error(`belay: no test file's path contains ${plan.only.join(" or ")}.\n\n${USAGE}`);
    return 2;
  }
  const grep = plan.grep === undefined ? [] : [`--test-name-pattern=${plan.grep}`];
  const unit = ["--test-isolation=none", `--test-timeout=${UNIT_TIMEOUT_MS}`, ...grep];
  const whole = ["--test-concurrency=1", `--test-timeout=${PROCESS_TIMEOUT_MS}`, ...grep];
  await runNodeTests("unit tests", chosen.unit, unit);
  if (chosen.rust) await runRustTests();
  await runNodeTests("tests of whole processes", chosen.process, whole);
  settleUnmet();
  if (total.failures.length > 0) console.log("");
  for (const line of total.failures) console.log(`failed: ${line.replace(`${ROOT}/`, "")}`);
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  return total.failed === 0 ? 0 : 1;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`belay: ${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}
