export { BelayUnderTest, node, runTypeScript } from "./belay-under-test.ts";
export { Child, type ChildOptions } from "./child.ts";
export { envoyBinary, moduleFile } from "./envoy.ts";
export { freePorts } from "./free-port.ts";
export { fire, type Miss, OpenLoop, type Reply, type Shot } from "./open-loop.ts";
export { type SocketClosed, SocketFleet } from "./socket-fleet.ts";
export { pause, until } from "./until.ts";
