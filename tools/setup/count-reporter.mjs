// A node:test reporter for `npm test`: one JSON line with what passed, failed and was skipped, and
// why, so that the closing summary can add up several runs.
const NEEDS = /^not run: needs /;

/** @param {AsyncIterable<{ type: string, data: any }>} events */
export default async function* countReporter(events) {
  const counts = { passed: 0, failed: 0, skipped: 0, failures: [], unmet: [] };
  for await (const { type, data } of events) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    // A suite is a frame around tests, and a file is one too unless it failed as a whole.
    const isFrame = data.details?.type === "suite";
    if (type === "test:fail") {
      const code = data.details?.error?.failureType;
      if (isFrame && code === "subtestsFailed") continue;
      if (!isFrame && code === "subtestsFailed") continue;
      counts.failed++;
      counts.failures.push(`${data.file ?? ""}: ${data.name}`);
    } else if (data.skip !== undefined || data.todo !== undefined) {
      counts.skipped++;
      const reason = typeof data.skip === "string" ? data.skip : "";
      if (NEEDS.test(reason)) counts.unmet.push(`${data.name}: ${reason}`);
    } else if (!isFrame) {
      counts.passed++;
    }
  }
  yield `${JSON.stringify(counts)}\n`;
}
