/** Helpers for the tests of programs that use this package: a server that is not there, and signed deliveries. */

import { Sapa } from "./client.ts";
import type { EventKind } from "./events.ts";
import { EVENTS, type OperationExample, OPERATIONS } from "./examples.ts";
import { signDelivery } from "./webhooks.ts";

/** A call that a client made. */
export interface RecordedRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  /** The JSON, the file, or undefined. */
  body: unknown;
  headers: Record<string, string>;
}

interface Answer {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

/**
 * Answers a client's calls without a server: each with the example of its documentation, or as you say.
 *
 * Calls are named as the client names them: `customers.get`. Nothing is stored: what a test creates cannot be read back
 * unless the test says so.
 */
export class FakeServer {
  readonly requests: RecordedRequest[] = [];
  readonly #answers = new Map<string, Answer[]>();

  /** A client of this server, which does not try again after an error. */
  client(): Sapa {
    const options = { apiKey: "svc_test_fake", baseUrl: "https://sapa.example.com", maxRetries: 0 };
    return new Sapa({ ...options, fetch: (input, init) => this.#respond(String(input), init ?? {}) });
  }

  /**
   * The next call of this method gets this `data`, as it is on the wire. Called again, it adds an answer for the call
   * after that one. The last answer is repeated. For a list, pass the items of its only page.
   */
  answer(method: string, data: unknown): void {
    const operation = getOperation(method);
    const body = structuredClone(operation.body ?? {}) as Record<string, Record<string, unknown>>;
    if (body["meta"]) body["meta"]["hasNextPage"] = false;
    if (body["pagination"]) body["pagination"]["hasMore"] = false;
    this.#add(method, { status: operation.status, body: { ...body, data } });
  }

  /** The next call of this method gets this error. */
  fail(method: string, status: number, code: string, message = "It failed.", retryAfter?: number): void {
    getOperation(method);
    const headers: Record<string, string> = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
    this.#add(method, { status, body: { error: { code, message } }, headers });
  }

  #add(method: string, answer: Answer): void {
    this.#answers.set(method, [...(this.#answers.get(method) ?? []), answer]);
  }

  async #respond(address: string, init: RequestInit): Promise<Response> {
    const url = new URL(address);
    const [name, operation] = findOperation(init.method ?? "GET", url.pathname);
    const headers = init.headers as Record<string, string>;
    this.requests.push({
      method: init.method ?? "GET",
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      body: headers["content-type"] === "application/json" ? JSON.parse(String(init.body)) : init.body,
      headers,
    });
    const answers = this.#answers.get(name) ?? [];
    const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? operation;
    const content = answer.body === null ? null : JSON.stringify(answer.body);
    const id = `req_${this.requests.length.toString(16).padStart(24, "0")}`;
    return new Response(content, {
      status: answer.status,
      headers: { "x-request-id": id, ...("headers" in answer ? answer.headers : {}) },
    });
  }
}

function getOperation(method: string): OperationExample {
  const operation = OPERATIONS[method];
  if (operation === undefined) throw new TypeError(`The client has no method ${method}.`);
  return operation;
}

function findOperation(method: string, path: string): [string, OperationExample] {
  const found = Object.entries(OPERATIONS)
    .filter(([, one]) => one.method === method && matches(one.path, path))
    // A fixed segment is preferred to a parameter.
    .sort(([, one], [, other]) => one.path.split("{").length - other.path.split("{").length)[0];
  if (found === undefined) throw new TypeError(`No method of the client calls ${method} ${path}.`);
  return found;
}

function matches(template: string, path: string): boolean {
  const [expected, actual] = [template.split("/"), path.split("/")];
  return expected.length === actual.length && expected.every((part, at) => part.startsWith("{") || part === actual[at]);
}

/** A delivery as a webhook endpoint receives it. */
export interface SignedDelivery {
  body: string;
  headers: Record<string, string>;
}

/** A delivery that `verifyWebhook` accepts. Without `data` it has the documented example of its kind. */
export async function signWebhook(
  kind: EventKind,
  options: { secret: string; data?: unknown; id?: string; timestamp?: number },
): Promise<SignedDelivery> {
  const body = JSON.stringify(options.data ?? EVENTS[kind]);
  const id = options.id ?? `evt_${crypto.randomUUID().replaceAll("-", "").slice(0, 26)}`;
  const timestamp = String(options.timestamp ?? Math.floor(Date.now() / 1000));
  return {
    body,
    headers: {
      "content-type": "application/json",
      "x-service-webhook-event": kind,
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": await signDelivery(new TextEncoder().encode(body), id, timestamp, options.secret),
    },
  };
}
