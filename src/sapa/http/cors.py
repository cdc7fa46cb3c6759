"""Calls from browsers of other origins: off unless the operator lists origins."""

ALLOWED_HEADERS = (
    b"x-api-key, authorization, content-type, idempotency-key, if-none-match, "
    b"mcp-protocol-version, mcp-method, mcp-name"
)
ALLOWED_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
EXPOSED_HEADERS = (
    b"x-request-id, etag, ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after, "
    b"idempotency-replayed, deprecation, sunset"
)
PREFLIGHT_SECONDS = b"600"


class Cors:
    """The origins that browsers may call from."""

    def __init__(self, origins: tuple[str, ...]) -> None:
        self.origins = {origin.encode() for origin in origins}

    def headers(self, method: str, request: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        origin = request.get(b"origin")
        if origin is None or not ({origin, b"*"} & self.origins):
            return [(b"vary", b"origin")]
        granted = [
            (b"vary", b"origin"),
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
        ]
        if method == "OPTIONS" and b"access-control-request-method" in request:
            granted += [
                (b"access-control-allow-methods", ALLOWED_METHODS),
                (b"access-control-allow-headers", ALLOWED_HEADERS),
                (b"access-control-max-age", PREFLIGHT_SECONDS),
            ]
        return granted
