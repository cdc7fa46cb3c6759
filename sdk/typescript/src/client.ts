/** The client. */

import { Resources } from "./resources.ts";
import { Transport } from "./transport.ts";

export interface SapaOptions {
  /** By default the environment variable SAPA_API_KEY. */
  apiKey?: string | undefined;
  /** The address of the server, such as https://sapa.example.com. By default the environment variable SAPA_BASE_URL. */
  baseUrl?: string | undefined;
  /** How long each try of a call may take. By default 30,000. */
  timeoutMs?: number | undefined;
  /**
   * How often a call is tried again when no response arrives, when the server is busy or fails, or when the rate limit
   * is used up; by default 2. A write is never done twice by that: all tries have the same Idempotency-Key.
   */
  maxRetries?: number | undefined;
  /** Sent with every call. */
  headers?: Record<string, string> | undefined;
  /** In place of the global one. */
  fetch?: typeof fetch | undefined;
}

/** Calls the API of a Sapa server. */
export class Sapa extends Resources {
  constructor(options: SapaOptions = {}) {
    super(
      new Transport({
        apiKey: findKey(options.apiKey),
        baseUrl: findAddress(options.baseUrl),
        timeoutMs: options.timeoutMs ?? 30_000,
        maxRetries: options.maxRetries ?? 2,
        headers: options.headers ?? {},
        fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      }),
    );
  }
}

function findKey(passed: string | undefined): string {
  const key = (passed ?? readVariable("SAPA_API_KEY")).trim();
  if (key === "") throw new TypeError("Pass apiKey, or set SAPA_API_KEY.");
  if (!/^[ -~]+$/.test(key)) {
    throw new TypeError("The API key is not whole: pass it as it was shown, svc_live_… or svc_test_….");
  }
  return key;
}

function findAddress(passed: string | undefined): string {
  const address = (passed ?? readVariable("SAPA_BASE_URL")).trim().replace(/\/+$/, "");
  if (!/^https?:\/\//.test(address)) {
    throw new TypeError("Pass baseUrl, such as https://sapa.example.com, or set SAPA_BASE_URL.");
  }
  if (/\/(customer|messaging)\/v1$/.test(address)) {
    throw new TypeError("baseUrl is the address of the server, without /customer/v1 or /messaging/v1.");
  }
  return address;
}

function readVariable(name: string): string {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] ?? "";
}
