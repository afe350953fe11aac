// A server that knows nothing of Belay: answers on PORT, with its pid. Words on its command line:
// `exit=N`: its exit code after SIGTERM; `daemon`: serves from a grandchild in a session of its own;
// `everywhere`: listens on all addresses; `ill`: /healthz answers 503 until SIGUSR1. /hold is answered
// at SIGUSR2.
import { spawn } from "node:child_process";
import { createServer } from "node:http";

const words = process.argv.slice(2);
const exitCode = Number(words.find((word) => word.startsWith("exit="))?.slice(5) ?? 0);
let well = !words.includes("ill");

if (words.includes("daemon")) {
  const rest = words.filter((word) => word !== "daemon");
  const child = spawn(process.execPath, [process.argv[1], ...rest], {
    detached: true,
    stdio: "inherit",
  });
  child.on("spawn", () => process.exit(0));
} else {
  const server = createServer((request, response) => {
    if (request.url === "/healthz") response.statusCode = well ? 200 : 503;
    const answer = () => response.end(`${process.pid}\n`);
    if (request.url !== "/hold") return answer();
    process.stdout.write("plain server: holding\n");
    return process.once("SIGUSR2", answer);
  });
  server.listen(Number(process.env.PORT), words.includes("everywhere") ? "::" : process.env.HOST);
  server.on("listening", () =>
    process.stdout.write(`plain server ${process.pid} on ${process.env.PORT}\n`),
  );
  process.on("SIGTERM", () => {
    process.stdout.write("plain server: SIGTERM\n");
    process.exit(exitCode);
  });
  process.on("SIGUSR1", () => (well = true));
}
