import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** A request of node:http, or of node:http2 by its compatibility interface. */
export type Request = IncomingMessage | Http2ServerRequest;
/** Its answer. */
export type Reply = ServerResponse | Http2ServerResponse;
