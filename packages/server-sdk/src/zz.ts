import { ServerResponse, IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { AnswerGuard } from "./answer.ts";
import { Visit } from "./visit.ts";
const N = 100000; const sock = new Socket(); const g = new AnswerGuard();
const mk = () => { const req = new IncomingMessage(sock); return [req, new ServerResponse(req)] as const; };
const session = { mayAnswer: () => true };
for (const guarded of [false, true, false, true, false, true]) {
  const t = process.cpuUsage().user;
  for (let i = 0; i < N; i++) { const [req, rep] = mk(); if (guarded) { const v = new Visit({ id: i, key: "a", incarnation: 1n, visitor: { admitted() {}, refused() {}, lost() {} }, session, onEnd() {} }); v.stage = "inside"; v.epoch = 2002002002002n; g.watch(req, rep, v); } rep.setHeader("a", "b"); rep.writeHead(200); rep.end("ok"); }
  console.log(guarded, ((process.cpuUsage().user - t) / N).toFixed(2), "us cpu");
}
process.exit(0)
