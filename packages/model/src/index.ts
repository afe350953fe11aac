export type { Clock, LogFields, Logger, Random } from "./ports.ts";
export { reasonTable } from "./error/reason-table.ts";
export type { ErrorFacts, Fault, Reason, ReasonCode } from "./error/reason-table.ts";
export { exitCodes } from "./error/exit-codes.ts";
export { errorTable, isErrorCode } from "./error/error-table.ts";
export type { ErrorCode } from "./error/error-table.ts";
export { BelayError, toBelayError } from "./error/belay-error.ts";
export type { BelayErrorOptions, ErrorDetails } from "./error/belay-error.ts";
export { compareProblems, formatProblem } from "./service-file/problem.ts";
export type { Problem } from "./service-file/problem.ts";
export type {
  DirectResponse,
  EnvelopeId,
  EnvelopeNumbers,
  EnvelopePlace,
  HostPlace,
  KeyPlace,
  KeyRule,
  MintedPlace,
  NamedPlace,
  Ownership,
  PathPlace,
  PlacementPolicy,
  Position,
  Route,
  RouteMatch,
  Service,
  ServiceSource,
} from "./service-file/service.ts";
export { checkServiceFiles, linkServices, positionOf, SERVICES_MAX } from "./service-file/link.ts";
export type { LinkResult, ServiceFile } from "./service-file/link.ts";
export { parseServiceFile } from "./service-file/parse.ts";
export type { ParseResult } from "./service-file/parse.ts";
export { formatMatch } from "./service-file/route-match.ts";
export { formatDuration, formatSize, parseDuration, parseSize } from "./service-file/quantity.ts";
export { serviceNamePattern } from "./service-file/schema.ts";
export { FILE_BYTES_MAX } from "./service-file/yaml-document.ts";
export { decodeKey, encodeKey, isKey, KEY_BYTES_MAX, parseKey, percentDecode } from "./key/key.ts";
export { explain } from "./explain/explain.ts";
export type { ExplainInput, Explanation } from "./explain/explain.ts";
export { formatKeyRule, formatPlace } from "./explain/place-text.ts";
