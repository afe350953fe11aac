export { ControlPlane, createControlPlane, ServiceFileRefused } from "./control-plane.ts";
export type { ApplyResult, ControlPlaneOptions, ControlPlaneStatus } from "./control-plane.ts";
export type { CoordinatorLinkStatus, DefinitionProblem } from "./coordinator/coordinator-link.ts";
export { shortType } from "./proxy-rejections.ts";
export type { ProxyRejection } from "./proxy-rejections.ts";
export type { Book, FileState, ServedService } from "./source/service-book.ts";
