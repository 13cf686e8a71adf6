/**
 * One conversation with the API, wherever it is: what the commands call, over anything that answers requests.
 */
export interface ApiAnswer {
  readonly status: number;
  readonly text: string;
}

export interface Api {
  /** `body` is JSON text. */
  call(method: string, path: string, body?: string): Promise<ApiAnswer>;
  close(): Promise<void>;
}

type Fetch = (request: Request) => Response | Promise<Response>;

export function apiOn(base: string, headers: Record<string, string>, send: Fetch, close: () => Promise<void>): Api {
  return {
    async call(method, path, body) {
      const init: RequestInit = { method, redirect: "error", headers: { ...headers, "content-type": "application/json" } };
      if (body !== undefined) init.body = body;
      const response = await send(new Request(base + path, init));
      return { status: response.status, text: await response.text() };
    },
    close,
  };
}
