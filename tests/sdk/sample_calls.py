"""A call of every method, made up from the examples of the documents, and a server that only checks what arrives."""

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

import sapa_client.types
from sapa.domains import ROUTES
from sapa.http.endpoints import Base, Endpoint, RouteTable
from sapa.http.schemas import build_example
from sapa.values.ids import IdKind
from sdk.generator.python import python_name
from sdk.generator.surface import JSON, ListOf, MapOf, Model, OneOf, Operation, Plain, Ref, Surface, Type, read_surface
from tests.http.response_check import document_of

SDK = Path(__file__).parents[2] / "sdk"
CSV = b"email\nayu@example.com\n"


@cache
def get_surface() -> Surface:
    return read_surface(ROUTES)


@cache
def _documents() -> dict[str, Any]:
    return {str(base): document_of(base) for base in Base}


class SampleCall(Struct, frozen=True):
    """What a method is called with, as JSON, and what the server then has to receive."""

    operation: Operation
    ids: list[str | int]
    query: dict[str, Any]
    body: dict[str, Any] | None

    @property
    def python_arguments(self) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = [*self.ids, *([CSV] if self.operation.file_types else [])]
        types = {field.name: field.type for field in self.operation.query}
        named = {python_name(name): _to_python(types[name], value) for name, value in self.query.items()}
        if self.operation.body is not None:
            named |= _python_fields(self.operation.body, self.body or {})
        if self.operation.file_types:
            named["content_type"] = self.operation.file_types[0]
        return positional, named

    @property
    def typescript_arguments(self) -> list[Any]:
        arguments: list[Any] = [*self.ids, *([CSV.decode()] if self.operation.file_types else [])]
        arguments += [self.query] if self.operation.query else []
        arguments += [self.body or {}] if self.operation.body else []
        return [*arguments, *([{"contentType": self.operation.file_types[0]}] if self.operation.file_types else [])]


@cache
def get_sample_calls() -> dict[str, SampleCall]:
    """By the operation's id."""
    return {operation.id: _build_call(operation) for operation in get_surface().operations}


def _build_call(operation: Operation) -> SampleCall:
    base = next(base for base in _documents() if operation.path.startswith(base))
    document = _documents()[base]
    declared = document["paths"][operation.path.removeprefix(base)][operation.method.lower()]
    schemas = document["components"]["schemas"]
    values = {
        (one["in"], one["name"]): _build_value(one["schema"], schemas) for one in declared["parameters"]
    }  # fmt: skip
    media = declared.get("requestBody", {}).get("content", {}).get(JSON)
    return SampleCall(
        operation=operation,
        ids=[
            int(value) if argument.is_number else value
            for argument in operation.arguments
            for value in [values["path", argument.wire]]
        ],
        query={field.name: values["query", field.name] for field in operation.query},
        body=media and media["example"],
    )


def _build_value(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """An example of a parameter; of an id without one, an id of its kind."""
    prefix = re.match(r"\^([a-z]+_)\[0-7\]", schema.get("pattern", ""))
    return IdKind(prefix[1]).example if prefix else build_example(schema, schemas)


def _python_fields(model: Model, value: dict[str, Any]) -> dict[str, Any]:
    return {
        python_name(field.name): _to_python(field.type, value[field.name])
        for field in model.fields
        if field.name in value
    }


@cache
def _models() -> dict[str, Model]:
    return {model.name: model for model in get_surface().models}


def _to_python(kind: Type, value: Any) -> Any:
    """JSON as the values that the Python SDK takes for this type."""
    if isinstance(kind, OneOf):
        kind = _choose(kind, value)
    if isinstance(kind, Ref) and kind.name in _models():
        model = _models()[kind.name]
        build: Callable[..., Any] = getattr(sapa_client.types, kind.name)
        return build(**_python_fields(model, value))
    if isinstance(kind, ListOf):
        return [_to_python(kind.item, item) for item in value]
    if isinstance(kind, MapOf):
        return {name: _to_python(kind.value, item) for name, item in value.items()}
    reader = _READERS.get(kind.name) if isinstance(kind, Plain) else None
    return value if reader is None or value is None else reader(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    "decimal": lambda number: Decimal(str(number)),
}


def _choose(union: OneOf, value: Any) -> Type:
    return next(option for option in union.options if _fits(option, value))


def _fits(option: Type, value: Any) -> bool:
    if isinstance(option, Ref) and option.name in _models():
        tag = _models()[option.name].tag
        return isinstance(value, dict) and (tag is None or value[tag[0]] == tag[1])
    if isinstance(option, ListOf | MapOf):
        return isinstance(value, list if isinstance(option, ListOf) else dict)
    kinds = {"null": type(None), "boolean": bool, "integer": int, "number": int | float, "decimal": int | float}
    kind: Any = kinds.get(option.name, str) if isinstance(option, Plain) else str
    return isinstance(value, kind)


_TABLE = RouteTable(ROUTES)


def bind(method: str, url: str, media_type: str, body: bytes) -> tuple[Endpoint, list[Any]]:
    """What the server makes of a request: the endpoint and its handler's arguments; raises what it would respond."""
    parts = urlsplit(url)
    route, values = _TABLE.match([unquote(segment) for segment in parts.path[1:].split("/")])
    assert route is not None, url
    endpoint = route.endpoints[method]
    return endpoint, endpoint.bind(values, parts.query.encode(), media_type, body)
