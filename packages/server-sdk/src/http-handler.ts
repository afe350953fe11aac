import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "@belay/model";
import { GuardedAnswer } from "./answer.ts";
import type { Gate } from "./gate.ts";
import type { Reply, Request } from "./http-types.ts";
import { parseIdentity } from "./identity.ts";
import { refuse } from "./refusal.ts";
import { RequestContext } from "./request-context.ts";

/**
 * A handler of requests that were admitted: this server owns `context.key` at `context.epoch`. A
 * promise is waited for, to log its failure and answer 500.
 */
export type RequestHandler<Req = IncomingMessage, Res = ServerResponse> = (
  request: Req,
  reply: Res,
  context: RequestContext,
) => unknown;

export interface HttpHandlerOptions<Req, Res> {
  readonly gate: Gate;
  readonly logger: Logger;
  readonly contexts: WeakMap<object, RequestContext>;
  readonly handle: RequestHandler<Req, Res>;
}

/**
 * A listener for "request" of node:http and node:http2: admission before the handler sees a byte
 * (G1), a watch over its answer while it writes (G6).
 */
export function createHttpHandler<Req extends Request, Res extends Reply>(
  options: HttpHandlerOptions<Req, Res>,
): (request: Req, reply: Res) => void {
  const { gate } = options;
  return (request, reply) => {
    let inside: { answer: GuardedAnswer; context: RequestContext } | undefined;
    const visit = gate.enter("request", parseIdentity(request.headers), {
      admitted: (admitted) => {
        const answer = new GuardedAnswer(request, reply, admitted);
        const context = new RequestContext(admitted.key, admitted.epoch);
        inside = { answer, context };
        options.contexts.set(request, context);
        void run(options, { request, reply, context });
      },
      refused: (refusal) => refuse(request, reply, refusal),
      lost: () => {
        inside?.answer.cut();
        inside?.context.lost();
      },
      leaving: () => inside?.context.leave(),
    });
    reply.once("close", () => {
      if (visit.stage === "inside" && !reply.writableFinished) inside?.context.lost();
      visit.end();
    });
  };
}

async function run<Req extends Request, Res extends Reply>(
  { handle, logger }: HttpHandlerOptions<Req, Res>,
  call: { request: Req; reply: Res; context: RequestContext },
): Promise<void> {
  const { request, reply, context } = call;
  try {
    await handle(request, reply, context);
  } catch (error) {
    logger.error({ error: error instanceof Error ? error.stack : String(error) }, "handler failed");
    if (reply.headersSent) {
      if ("stream" in reply) reply.stream.close();
      else reply.destroy();
      return;
    }
    reply.statusCode = 500;
    reply.end();
  }
}
