"""Endpoints are declared once: path, scope, types and docstring give routing, validation and documentation."""

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from sapa.context import AppContext
from sapa.db.pool import Connection, Tx
from sapa.http.bodies import BodyDecoder, Upload, build_decoder, decode_body
from sapa.http.errors import ApiError, InsufficientScope, Invalid, NotFound, Unauthorized
from sapa.http.keys import Key, Retirement
from sapa.http.outbound_call import OutboundCall, RequestInfo
from sapa.http.query_string import BadValue, QueryReader, get_parser
from sapa.http.responses import is_envelope
from sapa.http.uploads import UploadCall
from sapa.values.api_base import Base as Base
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company
from sapa.values.ids import IdKind

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])
Recorder = Callable[[AppContext, Company, RequestInfo, ApiError], Awaitable[None]]
"""Records a call that was refused."""
Group = Callable[[Tx, Company, Sequence[Any]], Awaitable[Sequence[Any]]]
"""Applies calls of one company in one transaction, in their order: gets the arguments of each, and returns its result
or the ApiError that its caller gets."""

OR = " or "
"""Separates scopes of which any one is enough."""

_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
_NO_QUERY = QueryReader(msgspec.defstruct("NoQuery", []))


class ToolTraits(msgspec.Struct, frozen=True):
    """What the rest of a declaration does not say about an endpoint as an MCP tool."""

    hidden: str | None = None
    """Why the endpoint is not a tool."""
    is_for_tests: bool = False
    """Whether only keys of a test environment see it."""
    is_destructive: bool | None = None
    """Whether a call overwrites, ends or removes something. By default the method and the path decide."""


class Call(msgspec.Struct, frozen=True):
    """What a handler gets besides its own parameters."""

    db: Connection
    """A plain connection in a read, a transaction in a write."""
    key: Key
    context: AppContext
    address: str = ""
    """Where the call came from; empty for the console's own calls."""

    @property
    def company(self) -> Company:
        return self.key.company

    @property
    def actor(self) -> ChangeActor:
        return self.key.user or ChangeActor("api_key", self.key.id)


class Endpoint:
    """One declared endpoint."""

    def __init__(
        self, routes: "Routes", method: str, path: str, handler: Callable[..., Awaitable[Any]], scope: str,
        status: int, raises: Sequence[type[ApiError]], tool: ToolTraits, recorder: Recorder | None = None,
        is_long_read: bool = False, group: Group | None = None, is_cached: bool = False,
    ) -> None:  # fmt: skip
        self.routes = routes
        self.method = method
        self.path = routes.prefix + path
        self.handler = handler
        self.scope = scope
        self.scopes = tuple(scope.split(OR))
        self.status = status
        self.raises = tuple(raises)
        self.tool = tool
        self.recorder = recorder
        self.is_long_read = is_long_read
        self.is_cached = is_cached
        """Whether the handler may keep its response in the `ResponseCache`."""
        self.group = group
        """How calls that arrive together share a transaction; the handler is for a call that runs alone."""
        self.retirement: Retirement | None = getattr(handler, "retirement", None)
        """Set by `deprecate` for an operation that will end."""
        self._not_found = next((error for error in raises if issubclass(error, NotFound)), NotFound)
        hints = get_type_hints(handler, include_extras=True)
        self.result = hints.pop("return")
        declared = inspect.signature(handler).parameters
        first, *names = declared
        self.is_outbound = hints[first] is OutboundCall
        self.takes_file = hints[first] is UploadCall
        """The body is a file, which the handler reads as it arrives."""
        self.parameters = {name: hints[name] for name in names}
        in_path = {camel(name): name for name in self.parameters if name not in {"query", "body"}}
        self._path_names = [in_path.pop(name, "") for name in _PATH_PARAMETER.findall(self.path)]
        if in_path or "" in self._path_names:
            raise TypeError(f"{method} {self.path}: its path does not match its handler's parameters")
        if (status == 204) != (self.result is type(None)):
            raise TypeError(f"{method} {self.path}: 204 is for handlers that return None, and only for those")
        self.path_ids = {name: _find_id_kind(self.parameters[name]) for name in self._path_names}
        self._path_parsers = {name: get_parser(self.parameters[name]) for name in self.path_ids}
        self.body = self.parameters.get("body")
        self._no_body = declared["body"].default if self.body else None
        self.needs_body = self._no_body is inspect.Parameter.empty
        """False where the handler's `body` has a default, which is used for a request without a body."""
        self.query = self.parameters.get("query")
        self.writes = method != "GET"
        self.has_etag = not self.writes and not self.is_outbound and not is_envelope(self.result)
        self.uploads = self.body is Upload
        self._query_reader = QueryReader(self.query) if self.query else _NO_QUERY

    @cached_property
    def _decoder(self) -> BodyDecoder:
        """Built with the first body: all of them together take a third of a second."""
        return build_decoder(self.body)

    def prepare(self) -> None:
        """Builds what calls need, which commands and workers do not: they declare endpoints, but call none."""
        if self.body and not self.uploads:
            _ = self._decoder

    def check_rights(self, key: Key) -> None:
        """Raises when the key lacks the product or the scope."""
        if missing := self.find_missing_right(key):
            raise self.routes.refusal(f"The API key lacks the {missing}.")

    def find_missing_right(self, key: Key) -> str | None:
        """The product or the scope that the key lacks."""
        product = self.routes.product
        if product is not None and product not in key.products:
            return f"product {product}"
        return f"scope {self.scope}" if key.scopes.isdisjoint(self.scopes) else None

    @property
    def operation(self) -> str:
        """Its name in the documents, in clients and as a tool."""
        return self.handler.__name__

    def bind(self, path_values: Sequence[str], query: bytes, media_type: str, body: bytes) -> list[Any]:
        """The handler's arguments after the call: query and body are validated first, then the path's ids."""
        values = {"query": self._query_reader.read(query)}
        if self.body is not None:
            values["body"] = self._body_value(media_type, body)
        for name, value in zip(self._path_names, path_values, strict=True):
            values[name] = self._path_value(name, value)
        return [values[name] for name in self.parameters]

    def _body_value(self, media_type: str, body: bytes) -> Any:
        if not body and not self.needs_body:
            return self._no_body
        if self.uploads:
            return Upload(media_type, body)
        return decode_body(body, self._decoder)

    def _path_value(self, name: str, value: str) -> Any:
        kind = self.path_ids[name]
        if (kind is not None and not kind.matches(value)) or "\0" in value or not value:
            raise self._not_found
        try:
            return self._path_parsers[name](value)
        except BadValue as error:
            raise Invalid.field(camel(name), str(error)) from None


def camel(name: str) -> str:
    """A Python name as it is written on the wire."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _find_id_kind(hint: Any) -> IdKind | None:
    if get_origin(hint) is Annotated:
        return next((mark for mark in get_args(hint)[1:] if isinstance(mark, IdKind)), None)
    return None


class Routes:
    """The endpoints of one domain under one prefix."""

    def __init__(
        self,
        prefix: str,
        *,
        base: Base,
        tag: str,
        about: str = "",
        product: str | None = None,
        refusal: type[ApiError] = InsufficientScope,
        resource: str = "",
    ) -> None:
        self.prefix = prefix
        self.base = base
        self.tag = tag
        self.about = about
        """Describes the tag in the documents; one of the tag's routes has it."""
        self.product = product
        self.refusal = refusal
        """The error for a key without the scope; shipping uses UNAUTHORIZED, also for a missing or invalid key."""
        self.resource = resource or tag.lower().replace(" ", "_")
        """Groups the endpoints for programs: `client.customers` in the SDKs. The tag, unless it says otherwise."""
        self.endpoints: list[Endpoint] = []

    @property
    def answers_unauthorized(self) -> bool:
        """Whether a missing or invalid key gets the same error as a missing scope."""
        return self.refusal is Unauthorized

    def get(
        self,
        path: str,
        *,
        scope: str,
        raises: Sequence[type[ApiError]] = (),
        tool: ToolTraits = ToolTraits(),
        is_long_read: bool = False,
        is_cached: bool = False,
    ) -> Callable[[Handler], Handler]:
        """A long read uses a connection of `LongReads`, of which each company has two at a time."""
        return self._declare("GET", path, scope, 200, raises, tool, is_long_read=is_long_read, is_cached=is_cached)

    def post(
        self,
        path: str,
        *,
        scope: str,
        status: int = 201,
        raises: Sequence[type[ApiError]] = (),
        tool: ToolTraits = ToolTraits(),
        recorder: Recorder | None = None,
        group: Group | None = None,
        is_cached: bool = False,
    ) -> Callable[[Handler], Handler]:
        """The recorder gets calls that pass key, rate limit and scope and are then refused."""
        return self._declare("POST", path, scope, status, raises, tool, recorder, group=group, is_cached=is_cached)

    def put(
        self, path: str, *, scope: str, raises: Sequence[type[ApiError]] = (), tool: ToolTraits = ToolTraits()
    ) -> Callable[[Handler], Handler]:
        return self._declare("PUT", path, scope, 200, raises, tool)

    def patch(
        self, path: str, *, scope: str, raises: Sequence[type[ApiError]] = (), tool: ToolTraits = ToolTraits()
    ) -> Callable[[Handler], Handler]:
        return self._declare("PATCH", path, scope, 200, raises, tool)

    def delete(
        self, path: str, *, scope: str, raises: Sequence[type[ApiError]] = (), tool: ToolTraits = ToolTraits()
    ) -> Callable[[Handler], Handler]:
        return self._declare("DELETE", path, scope, 204, raises, tool)

    def _declare(
        self,
        method: str,
        path: str,
        scope: str,
        status: int,
        raises: Sequence[type[ApiError]],
        tool: ToolTraits,
        recorder: Recorder | None = None,
        is_long_read: bool = False,
        group: Group | None = None,
        is_cached: bool = False,
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            endpoint = Endpoint(
                self, method, path, handler, scope, status, raises, tool, recorder, is_long_read, group, is_cached
            )
            self.endpoints.append(endpoint)
            return handler

        return declare


class Route:
    """One path and the endpoints of its methods."""

    __slots__ = ("endpoints", "routes", "template")

    def __init__(self, routes: Routes, template: str) -> None:
        self.routes = routes
        self.template = template
        self.endpoints: dict[str, Endpoint] = {}

    @property
    def allow(self) -> str:
        heads = ["HEAD"] if "GET" in self.endpoints else []
        return ", ".join([*self.endpoints, *heads, "OPTIONS"])


class RouteTable:
    """Paths as a tree of segments: a fixed segment is preferred to a parameter."""

    def __init__(self, domains: Sequence[Routes]) -> None:
        self._root: dict[str | None, Any] = {}
        for routes in domains:
            for endpoint in routes.endpoints:
                declared = self._get_route(routes, endpoint).endpoints
                if declared.setdefault(endpoint.method, endpoint) is not endpoint:
                    raise TypeError(f"{endpoint.method} {endpoint.path} is declared twice")

    def _get_route(self, routes: Routes, endpoint: Endpoint) -> Route:
        node = self._root
        template = f"{routes.base}{endpoint.path}"
        for segment in template[1:].split("/"):
            node = node.setdefault(None if segment.startswith("{") else segment, {})
        route: Route = node.setdefault("", Route(routes, template))
        return route

    def match(self, segments: list[str]) -> tuple[Route | None, list[str]]:
        """The route of a path and the values of its parameters."""
        node = self._root
        values = []
        for segment in segments:
            if not segment:
                return None, []
            child = node.get(segment)
            if child is None:
                child = node.get(None)
                values.append(segment)
            if child is None:
                return None, []
            node = child
        return node.get(""), values
