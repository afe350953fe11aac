import type { Command } from "commander";
import { EXIT_CODES } from "./exit-code.ts";

const INTRODUCTION = `# Command line

\`belay\` is one program; its verbs are the processes, and what operators do. In a checkout it runs as
\`npx belay …\`. This page is made of \`--help\`, and a test compares them.

Verbs of operators use the admin API alone ([admin-api.md](admin-api.md)), at \`BELAY_API\` or \`--api\`.
Results go to standard output, logs and messages to standard error. Colours appear on a terminal only,
and not if \`NO_COLOR\` is set. \`-o json\` prints what the API answered.

\`/healthz\` and \`/metrics\`: the control plane has them on the admin API's port; a coordinator on its own
and an edge have a small port for them (\`--metrics-port\`, by default 8803 and 8804; if that is in use it
is left out, unless you asked for it). An edge's are Envoy's \`/ready\` and \`/stats/prometheus\`.
`;

/** The text of docs/reference/cli.md for a program. */
export function createReference(program: Command): string {
  const codes = EXIT_CODES.map(([code, meaning]) => `| ${code} | ${meaning} |`);
  const exits = `## Exit codes\n| code | meaning |\n| --- | --- |\n${codes.join("\n")}\n`;
  return [INTRODUCTION, exits, ...sections(program, "belay")].join("\n");
}

function sections(command: Command, path: string): string[] {
  const below = command.commands.flatMap((it) => sections(it, `${path} ${it.name()}`));
  return [`## \`${path}\`\n\`\`\`\n${captureHelp(command)}\n\`\`\`\n`, ...below];
}

/** What `--help` prints, examples included. */
function captureHelp(command: Command): string {
  let text = "";
  const before = command.configureOutput();
  command.configureOutput({
    ...before,
    writeOut: (chunk) => (text += chunk),
    getOutHasColors: () => false,
  });
  command.outputHelp();
  command.configureOutput(before);
  return text.trimEnd();
}
