/** Verifies deliveries of webhooks and reads their events. */

import { SapaError } from "./api-error.ts";
import type { AnyEvent } from "./events.ts";

/** The delivery is not from Sapa, was changed on its way, or is too old. Answer it with 400. */
export class InvalidWebhook extends SapaError {
  override readonly name: string = "InvalidWebhook";
}

/** Headers as fetch, Node and frameworks have them. */
export type HeaderSource = Headers | Record<string, string | string[] | undefined>;

/**
 * Checks the signature of a delivery and returns its event; throws `InvalidWebhook`.
 *
 * Pass the body exactly as it was received: parsed and written again, it has other bytes. `secret` is the signing
 * secret of the endpoint, `whsec_…`. A delivery that was sent more than `toleranceSeconds` (300) ago is refused, so that
 * nobody can send it once more later.
 */
export async function verifyWebhook(
  body: string | Uint8Array | ArrayBuffer,
  headers: HeaderSource,
  secret: string,
  options: { toleranceSeconds?: number } = {},
): Promise<AnyEvent> {
  const content = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
  const find = readHeaders(headers);
  const id = find("webhook-id");
  const timestamp = find("webhook-timestamp");
  checkAge(timestamp, options.toleranceSeconds ?? 300);
  const signatures = find("webhook-signature").split(" ");
  if (!(await matchesAny(signatures, content, id, timestamp, secret))) {
    throw new InvalidWebhook("No signature matches. Check the secret, and pass the body as it was received.");
  }
  return readEvent(content, id, find("x-service-webhook-event"), new Date(Number(timestamp) * 1000));
}

/** The signature of a delivery, as Standard Webhooks defines it. */
export async function signDelivery(body: Uint8Array, id: string, timestamp: string, secret: string): Promise<string> {
  const signature = await crypto.subtle.sign("HMAC", await importKey(secret), buildSigned(body, id, timestamp));
  return "v1," + btoa(String.fromCharCode(...new Uint8Array(signature)));
}

async function matchesAny(
  signatures: string[],
  body: Uint8Array,
  id: string,
  timestamp: string,
  secret: string,
): Promise<boolean> {
  const key = await importKey(secret);
  const signed = buildSigned(body, id, timestamp);
  for (const signature of signatures) {
    const bytes = signature.startsWith("v1,") ? decodeBase64(signature.slice(3)) : undefined;
    // In constant time, as Web Crypto compares.
    if (bytes !== undefined && (await crypto.subtle.verify("HMAC", key, bytes, signed))) return true;
  }
  return false;
}

async function importKey(secret: string): Promise<CryptoKey> {
  const bytes = decodeBase64(secret.trim().replace(/^whsec_/, ""));
  if (bytes === undefined || bytes.length === 0) { // anybody can sign with an empty one
    throw new TypeError("The secret is not a signing secret: pass it whole, whsec_…, as it was shown.");
  }
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
}

function buildSigned(body: Uint8Array, id: string, timestamp: string): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + body.length);
  signed.set(head);
  signed.set(body, head.length);
  return signed;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function readHeaders(headers: HeaderSource): (name: string) => string {
  const pairs = headers instanceof Headers ? [...headers.entries()] : Object.entries(headers);
  const found = new Map(pairs.map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => {
    const value = found.get(name);
    const first = Array.isArray(value) ? value[0] : value;
    if (first === undefined) throw new InvalidWebhook(`The header ${name} is missing.`);
    return first;
  };
}

function checkAge(timestamp: string, toleranceSeconds: number): void {
  if (!/^\d{1,12}$/.test(timestamp)) throw new InvalidWebhook("The header webhook-timestamp is not a time.");
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > toleranceSeconds) {
    throw new InvalidWebhook(`The delivery was not sent within the last ${toleranceSeconds} seconds.`);
  }
}

function readEvent(content: Uint8Array, id: string, kind: string, sentAt: Date): AnyEvent {
  let data: unknown;
  try {
    data = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
  } catch {
    throw new InvalidWebhook("The body is not JSON.");
  }
  const truncated = typeof data === "object" && data !== null && "truncated" in data && data.truncated === true;
  return { id, kind, sentAt, truncated, data } as AnyEvent;
}
