/** What to write for a service that nobody has defined. */
export function serviceFileAdvice(service: string): readonly string[] {
  return [
    `Write ${service}.yaml, and say where requests carry their key:`,
    `    service: ${service}`,
    "    key:",
    "      - path: /{key}/**",
    `Then: belay check ${service}.yaml && belay apply ${service}.yaml`,
    "`belay get services` lists those that there are.",
  ];
}
