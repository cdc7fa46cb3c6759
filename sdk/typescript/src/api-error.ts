/** What a call can throw, apart from the classes of single codes. */

/** The base of everything that this package throws on purpose. */
export class SapaError extends Error {
  // Written out in every class: tools that shorten programs rename classes.
  override readonly name: string = "SapaError";
}

/** No response arrived: the server cannot be reached, or the connection broke. `cause` has the details. */
export class ConnectionFailed extends SapaError {
  override readonly name: string = "ConnectionFailed";
}

/** No response arrived in time. */
export class TimedOut extends ConnectionFailed {
  override readonly name: string = "TimedOut";
}

/** The response is not one of Sapa's. Often a proxy answered, or the base URL is wrong. */
export class UnexpectedResponse extends SapaError {
  override readonly name: string = "UnexpectedResponse";
  readonly status: number;
  readonly body: string;
  /** Seconds to wait before the next try, if the proxy says so. */
  readonly retryAfter: number | null;

  constructor(message: string, status: number, body: string, retryAfter: number | null = null) {
    super(message);
    this.status = status;
    this.body = body;
    this.retryAfter = retryAfter;
  }
}

/** One reason of an error. A validation error names fields, a provider's refusal says what kind it is. */
export interface ErrorDetail {
  field?: string;
  message?: string;
  /** The resource that has the same value. */
  id?: string;
  category?: string;
  /** The provider's own code. */
  providerCode?: string;
  /** Whether the same request may succeed later. */
  retryable?: boolean;
}

export interface ErrorParts {
  status: number;
  code: string;
  message: string;
  details?: ErrorDetail[] | undefined;
  requestId?: string | null;
  retryAfter?: number | null;
}

/** The server refused the call. Subclasses say why: one for each status, and one for each code. */
export class ApiError extends SapaError {
  override readonly name: string = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly details: ErrorDetail[];
  /** Names the call in the server's logs. */
  readonly requestId: string | null;
  /** Seconds to wait before the next try, if the server says so. */
  readonly retryAfter: number | null;

  constructor(parts: ErrorParts) {
    super(parts.message);
    this.status = parts.status;
    this.code = parts.code;
    this.details = parts.details ?? [];
    this.requestId = parts.requestId ?? null;
    this.retryAfter = parts.retryAfter ?? null;
  }
}
