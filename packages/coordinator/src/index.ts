export {
  type CoordinatorOptions,
  type RunningCoordinator,
  startCoordinator,
} from "./start-coordinator.ts";
