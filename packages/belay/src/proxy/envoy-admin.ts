const REQUEST_MS = 2000;

/** Envoy's admin interface, as far as `belay proxy` uses it. Each call rejects if Envoy is away. */
export class EnvoyAdmin {
  readonly #base: string;

  constructor(port: number) {
    this.#base = `http://127.0.0.1:${port}`;
  }

  /** True once Envoy serves; false while it starts, waits for its gate, or drains. */
  async isReady(): Promise<boolean> {
    const response = await this.#call("GET", "/ready");
    await response.text();
    return response.status === 200;
  }

  /** Answers that go out from now on ask clients to come anew; listeners stay open. */
  async startDrain(): Promise<void> {
    await (await this.#call("POST", "/drain_listeners?graceful&skip_exit")).text();
  }

  /** Closes the listeners; what runs goes on. */
  async closeListeners(): Promise<void> {
    await (await this.#call("POST", "/drain_listeners")).text();
  }

  /** For the end: what Envoy warns of then is that it ends. */
  async logErrorsOnly(): Promise<void> {
    await (await this.#call("POST", "/logging?level=error")).text();
  }

  /** Requests and WebSockets that run, the admin's own left out. */
  async countActiveRequests(): Promise<number> {
    const response = await this.#call("GET", "/stats?filter=downstream_rq_active$");
    let sum = 0;
    for (const line of (await response.text()).split("\n")) {
      if (line.startsWith("http.") && !line.startsWith("http.admin.")) {
        sum += Number(line.slice(line.lastIndexOf(":") + 1));
      }
    }
    return sum;
  }

  /** Prometheus text of everything, Belay's module included. */
  async metrics(): Promise<string> {
    return (await this.#call("GET", "/stats/prometheus")).text();
  }

  async #call(method: string, path: string): Promise<Response> {
    return fetch(`${this.#base}${path}`, { method, signal: AbortSignal.timeout(REQUEST_MS) });
  }
}
