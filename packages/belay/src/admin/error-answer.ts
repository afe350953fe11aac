import { ServiceFileRefused } from "@belay/control-plane";
import { BelayError, errorTable, type ErrorCode, toBelayError } from "@belay/model";
import { BadPart } from "./route.ts";
import type { AdminError } from "./schemas.ts";

export interface ErrorAnswer {
  readonly status: number;
  readonly body: AdminError;
}

/** An edge says 503, as the file may be on its way; an operator asked for something that is not there. */
const ownStatuses: Partial<Record<ErrorCode, number>> = { "service-unknown": 404 };

const answer = (code: ErrorCode, message: string, more: Partial<AdminError> = {}): ErrorAnswer => ({
  status: ownStatuses[code] ?? errorTable[code].http,
  body: { code, message, hint: errorTable[code].hint, details: {}, problems: [], ...more },
});

/** Fastify's own refusals, in our words. */
const fastifyCodes: Readonly<Record<string, readonly [code: ErrorCode, message: string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["body-not-json", "the body is not application/json"],
  FST_ERR_CTP_INVALID_JSON_BODY: ["body-not-json", "the body is no good JSON"],
  FST_ERR_CTP_EMPTY_JSON_BODY: ["body-not-json", "the body is empty"],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["bad-request", "the body is not as long as it says"],
  FST_ERR_CTP_BODY_TOO_LARGE: ["body-too-large", "the body is too large"],
  FST_ERR_BAD_URL: ["bad-request", "the address is no good URL: a % in it is broken"],
  FST_ERR_MAX_PARAM_LENGTH: ["bad-request", "a name in the address is too long"],
};

/** What the API answers to anything thrown. */
export function toErrorAnswer(thrown: unknown): ErrorAnswer {
  if (thrown instanceof ServiceFileRefused) {
    return answer(thrown.code, thrown.message, { problems: [...thrown.problems] });
  }
  if (thrown instanceof BadPart) {
    const told = thrown.issues.slice(0, 5).map(({ path, message }) => {
      const member = path.map(String).join(".");
      return member === "" ? message : `${member}: ${message}`;
    });
    return answer("bad-request", `${thrown.part} is not as the route takes it: ${told.join("; ")}`);
  }
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  const known = fastifyCodes[code];
  if (known !== undefined) return answer(...known);
  if (code === "SyntaxError" || thrown instanceof SyntaxError) {
    return answer("body-not-json", "the body is no good JSON");
  }
  const error: BelayError = toBelayError(thrown);
  if (error.code === "internal")
    return answer("internal", "a fault in Belay; the log of the core has the details");
  return answer(error.code, error.message, { details: { ...error.details } });
}
