/** The longest DNS name. */
const HOST_BYTES_MAX = 253;

/** `eu.{key}.example.com`, taken apart, in lower case; rules as in native/keys/src/host.rs. */
export interface HostTemplate {
  /** `eu.` */
  readonly before: string;
  /** `.example.com` */
  readonly after: string;
}

export type HostTemplateResult =
  | { readonly ok: true; readonly template: HostTemplate }
  | { readonly ok: false; readonly why: string };

const label = /^[A-Za-z0-9_-]{1,63}$/;

const no = (why: string): HostTemplateResult => ({ ok: false, why });

/** Takes a host template apart; `why` is a clause that follows «the template …». */
export function parseHostTemplate(text: string): HostTemplateResult {
  if (text.length > HOST_BYTES_MAX) return no(`is longer than ${HOST_BYTES_MAX} bytes`);
  const [before, after, more] = text.split("{key}");
  if (before === undefined || after === undefined || more !== undefined) {
    return no("must have the label {key} exactly once");
  }
  if ((before !== "" && !before.endsWith(".")) || (after !== "" && !after.startsWith("."))) {
    return no("must have {key} as a whole label, between dots");
  }
  const labels = [
    ...(before === "" ? [] : before.slice(0, -1).split(".")),
    ...(after === "" ? [] : after.slice(1).split(".")),
  ];
  if (!labels.every((part) => label.test(part))) {
    return no("has a label that is not 1-63 of [A-Za-z0-9_-]");
  }
  return { ok: true, template: { before: before.toLowerCase(), after: after.toLowerCase() } };
}

/** `host` of `host:port`; `[::1]:80` keeps its brackets. */
export const dropPort = (authority: string): string => authority.replace(/:[^:\]]*$/, "");

/**
 * `play.example.com:80` of `play.example.com.:80`: what Envoy's connection manager makes of it
 * (`strip_trailing_host_dot`). Of several dots one goes.
 */
export function dropLastDot(authority: string): string {
  const at = authority.lastIndexOf(".");
  if (at < 0) return authority;
  const rest = authority.slice(at + 1);
  return rest === "" || rest.startsWith(":") ? authority.slice(0, at) + rest : authority;
}

/** Without port and last dot, in lower case. */
function hostOf(authority: string): string {
  const host = dropPort(authority);
  return (host.endsWith(".") ? host.slice(0, -1) : host).toLowerCase();
}

/** The label that is the key; undefined if the host has another shape. */
export function matchHost(template: HostTemplate, authority: string): string | undefined {
  const host = hostOf(authority);
  const { before, after } = template;
  if (host.length <= before.length + after.length) return undefined;
  if (!host.startsWith(before) || !host.endsWith(after)) return undefined;
  const found = host.slice(before.length, host.length - after.length);
  return found.includes(".") ? undefined : found;
}
