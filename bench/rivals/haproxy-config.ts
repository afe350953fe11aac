/** HAProxy with a stick table by the key in the path, one thread. */
export function createHaproxyConfig(
  port: number,
  upstreamPorts: readonly number[],
  keys: number,
): string {
  const servers = upstreamPorts.map((it, at) => `  server s${at} 127.0.0.1:${it}`).join("\n");
  // The table is asked for more than it has to hold: a full one drops its oldest entries.
  return `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  option http-keep-alive
  http-reuse always
  timeout connect 1s
  timeout client 60s
  timeout server 60s
frontend edge
  bind 127.0.0.1:${port}
  default_backend world
backend world
  balance roundrobin
  stick-table type string len 64 size ${keys * 2} expire 2h
  stick on path,field(3,/)
  http-request replace-path /s/[^/]+(/.*) \\1
${servers}
`;
}
