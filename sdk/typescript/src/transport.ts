/** Sends requests: authentication, retries, time-outs and errors. */

import { ApiError, ConnectionFailed, type ErrorDetail, SapaError, TimedOut, UnexpectedResponse } from "./api-error.ts";
import { BY_CODE, BY_STATUS, ServerError } from "./errors.ts";
import { type DownloadedFile, encodeQuery, type FileSource } from "./values.ts";
import { VERSION } from "./version.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8_000;
/** The rate limit's window is a minute. What takes longer is for the caller to decide. */
const LONGEST_RETRY_AFTER = 60;
/** A timer that is set for longer ends at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** The status of a file that the server is still making. */
const ACCEPTED = 202;
const RETRIED_STATUSES = new Set([408, 429, 500, 502, 503, 504]);

/** Options of a single call. */
export interface RequestOptions {
  /** Makes a write happen once for 24 hours, also over several calls. Each call has one of its own by default. */
  idempotencyKey?: string | undefined;
  /** Aborts the call; it then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** How long each try may take. Infinity is without end. */
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  headers?: Record<string, string> | undefined;
}

/** Options of a call that uploads a file. */
export interface UploadOptions extends RequestOptions {
  /** The media type of the file, if its name or type does not say it. */
  contentType?: string | undefined;
}

export interface TransportOptions {
  apiKey: string;
  baseUrl: string;
  timeoutMs: number;
  maxRetries: number;
  headers: Record<string, string>;
  fetch: typeof fetch;
}

export interface ApiRequest {
  method: string;
  path: string;
  query?: object | undefined;
  body?: object | undefined;
  file?: { content: FileSource; contentType: string };
}

interface Reply {
  status: number;
  headers: Headers;
  content: Uint8Array;
}

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** The response's JSON. */
  async json(request: ApiRequest, options: RequestOptions | undefined): Promise<unknown> {
    const reply = await this.#send(request, options);
    if (reply.content.length === 0) return undefined;
    try {
      return JSON.parse(text(reply));
    } catch {
      throw unexpected(reply, "is not JSON");
    }
  }

  async file(request: ApiRequest, options: RequestOptions | undefined): Promise<DownloadedFile> {
    return readFile(await this.#send(request, options));
  }

  async findFile(request: ApiRequest, options: RequestOptions | undefined): Promise<DownloadedFile | null> {
    const reply = await this.#send(request, options);
    return reply.status === ACCEPTED ? null : readFile(reply);
  }

  async #send(request: ApiRequest, options: RequestOptions = {}): Promise<Reply> {
    const url = this.#options.baseUrl + request.path + encodeQuery(request.query ?? {});
    const init = this.#build(request, options); // once for all tries, so that they share the Idempotency-Key
    let left = options.maxRetries ?? this.#options.maxRetries;
    let pause = FIRST_WAIT_MS;
    for (;;) {
      const outcome = await this.#try(url, init, options);
      if (!(outcome instanceof SapaError)) return outcome;
      const retryAfter = outcome instanceof ConnectionFailed ? null : (outcome as ApiError | UnexpectedResponse).retryAfter;
      if (left <= 0 || !maySucceedLater(outcome) || (retryAfter ?? 0) > LONGEST_RETRY_AFTER) throw outcome;
      await sleep(retryAfter === null ? pause * (0.5 + Math.random() / 2) : retryAfter * 1000, options.signal);
      left -= 1;
      pause = Math.min(pause * 2, LONGEST_WAIT_MS);
    }
  }

  #build(request: ApiRequest, options: RequestOptions): RequestInit {
    const headers: Record<string, string> = {
      accept: "application/json",
      ...userAgent(),
      ...lowerNames(this.#options.headers),
      ...lowerNames(options.headers),
      "x-api-key": this.#options.apiKey,
    };
    if (request.method !== "GET") {
      headers["idempotency-key"] = chooseKey(options.idempotencyKey ?? headers["idempotency-key"]);
    }
    const init: RequestInit = { method: request.method, headers, redirect: "manual" };
    if (request.file !== undefined) {
      if ((request.file.content as unknown) instanceof ReadableStream) {
        throw new TypeError("A stream cannot be sent again. Read it first: await new Response(stream).blob()");
      }
      headers["content-type"] = request.file.contentType;
      init.body = request.file.content as BodyInit;
    } else if (request.body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(request.body);
    }
    return init;
  }

  /** One try: a success, or the error of this try. */
  async #try(url: string, init: RequestInit, options: RequestOptions): Promise<Reply | SapaError> {
    options.signal?.throwIfAborted();
    const milliseconds = options.timeoutMs ?? this.#options.timeoutMs;
    const controller = new AbortController();
    const abort = () => controller.abort();
    const timer = milliseconds <= LONGEST_TIMER_MS ? setTimeout(abort, milliseconds) : undefined;
    options.signal?.addEventListener("abort", abort);
    try {
      const response = await this.#options.fetch(url, { ...init, signal: controller.signal });
      const content = new Uint8Array(await response.arrayBuffer());
      const reply = { status: response.status, headers: response.headers, content };
      return response.ok ? reply : buildError(reply);
    } catch (cause) {
      options.signal?.throwIfAborted();
      const host = new URL(url).host;
      if (controller.signal.aborted) return new TimedOut(`No response from ${host} within ${milliseconds} ms.`, { cause });
      return new ConnectionFailed(`No response from ${host}: ${describe(cause)}.`, { cause });
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", abort);
    }
  }
}

/** Fetch joins the values of names that differ in case only. */
function lowerNames(headers: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** The caller's Idempotency-Key, or one for this call alone. */
function chooseKey(chosen: string | undefined): string {
  if (chosen === undefined) {
    // Not crypto.randomUUID, which pages without TLS do not have.
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  if (!/^[ -~]{1,255}$/.test(chosen)) {
    throw new TypeError("idempotencyKey has to be 1 to 255 printable ASCII characters.");
  }
  return chosen;
}

/** Browsers send their own, and another one would need the server's consent. */
function userAgent(): Record<string, string> {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node === undefined ? {} : { "user-agent": `sapa-client-typescript/${VERSION}` };
}

/** A provider's refusal says it by itself; otherwise the status does. */
function maySucceedLater(error: SapaError): boolean {
  if (error instanceof ConnectionFailed) return true;
  if (error instanceof ApiError) {
    const stated = error.details.filter((detail) => typeof detail.retryable === "boolean");
    if (stated.length > 0) return stated.some((detail) => detail.retryable);
    if (error.code === "IDEMPOTENCY_IN_PROGRESS") return true;
  }
  return RETRIED_STATUSES.has((error as ApiError | UnexpectedResponse).status);
}

function buildError(reply: Reply): ApiError | UnexpectedResponse {
  const body = readErrorBody(reply);
  if (body === undefined) {
    return unexpected(reply, "is not an error of Sapa. Check the base URL and the proxies before the server");
  }
  const kind = BY_CODE[body.code] ?? BY_STATUS[reply.status] ?? (reply.status >= 500 ? ServerError : ApiError);
  return new kind({
    ...body,
    status: reply.status,
    requestId: reply.headers.get("x-request-id"),
    retryAfter: readRetryAfter(reply),
  });
}

/** Seconds, or a time, as proxies may write it. Null for anything else. */
function readRetryAfter(reply: Reply): number | null {
  const text = (reply.headers.get("retry-after") ?? "").trim();
  if (/^\d+$/.test(text)) return Number(text);
  const until = /\bGMT$/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(until) ? null : Math.max(0, (until - Date.now()) / 1000);
}

function readErrorBody(reply: Reply): { code: string; message: string; details?: ErrorDetail[] } | undefined {
  try {
    const { error } = JSON.parse(text(reply));
    return typeof error.code === "string" && typeof error.message === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

function readFile(reply: Reply): DownloadedFile {
  const disposition = reply.headers.get("content-disposition") ?? "";
  return {
    content: reply.content,
    contentType: reply.headers.get("content-type") ?? "",
    filename: readFilename(disposition),
  };
}

/** In quotation marks, in which a backslash stands before others, or in percent-encoded UTF-8. */
function readFilename(disposition: string): string | null {
  const encoded = /filename\*=UTF-8''([^;\s]+)/i.exec(disposition)?.[1];
  if (encoded !== undefined) {
    try {
      return decodeURIComponent(encoded);
    } catch {
      // not UTF-8: the plain name remains
    }
  }
  return /filename="((?:[^"\\]|\\.)*)"/i.exec(disposition)?.[1]?.replace(/\\(.)/g, "$1") ?? null;
}

function unexpected(reply: Reply, reason: string): UnexpectedResponse {
  const message = `The response with status ${reply.status} ${reason}.`;
  return new UnexpectedResponse(message, reply.status, text(reply), readRetryAfter(reply));
}

function text(reply: Reply): string {
  return new TextDecoder().decode(reply.content);
}

function describe(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
