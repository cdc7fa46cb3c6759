"""The call of a tool's operation, made from the request that asked for it."""

from sapa.http.errors import MissingApiKey
from sapa.http.exchange import Exchange
from sapa.http.incoming import BufferedBody
from sapa.mcp.arguments import ToolRequest
from sapa.mcp.tools import Tool

NOT_PASSED_ON = {
    b"authorization", b"content-encoding", b"content-length", b"content-type", b"idempotency-key", b"if-none-match",
}  # fmt: skip
"""Headers that belong to the outer request alone. The key is passed on as x-api-key."""

NO_BODY = BufferedBody(b"")


def get_raw_key(exchange: Exchange) -> str:
    """The key in x-api-key, or as a bearer token."""
    if raw := exchange.header(b"x-api-key"):
        return raw
    scheme, _, token = (exchange.header(b"authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise MissingApiKey("Send your API key in the header x-api-key, or as a bearer token.")
    return token.strip()


def build_call(outer: Exchange, tool: Tool) -> Exchange:
    """A call for the key and from the address of the outer request."""
    scope = {"method": tool.endpoint.method, "path": tool.template, "query_string": b""}
    call = Exchange(scope, NO_BODY, outer.request_id)
    call.address, call.key = outer.address, outer.key
    call.headers = {b"content-type": b"application/json"}
    if tool.endpoint.is_outbound:  # only its request is recorded
        call.headers |= {name: value for name, value in outer.headers.items() if name not in NOT_PASSED_ON}
        call.headers[b"x-api-key"] = get_raw_key(outer).encode("latin-1")
    return call


def fill_call(call: Exchange, request: ToolRequest) -> None:
    """Puts the tool's arguments into its call."""
    call.path = request.path
    call.scope["query_string"] = request.query
    if request.body:
        call.incoming = BufferedBody(request.body)
    if request.idempotency_key is not None:
        call.headers[b"idempotency-key"] = request.idempotency_key.encode()
