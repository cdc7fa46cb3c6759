"""The input schema of a tool: all arguments in one flat object, and as short as a model can work with.

Examples, patterns, lengths, bounds, synonyms and null are left out: `read_docs` has them, and a wrong value gets an
error that says what is accepted. An object of many fields is written out once; where it occurs again, its description
names the first place.
"""

import re
from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from sapa.http.endpoints import Endpoint, camel
from sapa.http.responses import OWN_STATUSES
from sapa.http.schemas import REF, Schema, SchemaRegistry

IDEMPOTENCY_KEY = "idempotencyKey"
IDEMPOTENCY_SCHEMA: Schema = {"type": "string", "description": "Makes a repeated call happen once."}

FEWEST_REFERRED = 3
"""Fields of an object that is worth a reference."""

OBVIOUS = {"page", "limit"}
"""Arguments that need no description."""

_LEFT_OUT = re.compile(r" ?Default: `[^`]*`\.|,? (?:with )?at most (?:its|three|\d+|the currency's) decimal places")
_COPIED = ("type", "format", "enum", "required")


def build_input_schema(endpoint: Endpoint) -> Schema:
    """Path, query and body in one object. Two of them never share a name."""
    registry = SchemaRegistry()
    shortener = _Shortener(registry.components)
    path: Schema = {
        camel(name): shortener.shorten(registry.describe_request(endpoint.parameters[name]))
        for name in endpoint.path_ids
    }
    query = registry.query(endpoint.query) if endpoint.query else {}
    body = registry.describe_request(endpoint.body) if endpoint.body else {}
    objects = [shortener.shorten(part) for part in (query, body)]
    properties = path | {name: field for part in objects for name, field in part.get("properties", {}).items()}
    if len(properties) != len(path) + sum(len(part.get("properties", {})) for part in objects):
        raise TypeError(f"{endpoint.operation} has two arguments of the same name; rename one.")
    required = [*path, *(name for part in objects for name in part.get("required", []))]
    if takes_idempotency_key(endpoint):
        properties.setdefault(IDEMPOTENCY_KEY, IDEMPOTENCY_SCHEMA)
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def build_result_schema(endpoint: Endpoint) -> Schema:
    """The shape of what a tool returns; of several, the usual one."""
    registry = SchemaRegistry()
    is_union = get_origin(endpoint.result) in {Union, UnionType}
    options = get_args(endpoint.result) if is_union else (endpoint.result,)
    usual = next(option for option in options if get_origin(option) not in OWN_STATUSES)
    return _Shortener(registry.components).shorten(registry.describe_response(usual))


def takes_idempotency_key(endpoint: Endpoint) -> bool:
    """Writes that change more when they are repeated."""
    return endpoint.method in {"POST", "PATCH"} and not is_read(endpoint)


def is_read(endpoint: Endpoint) -> bool:
    """Whether the endpoint changes nothing: what it needs are scopes to read, whatever its method is."""
    return all(scope.endswith(":READ") for scope in endpoint.scopes)


class _Shortener:
    """Shortens the schemas of one tool."""

    def __init__(self, components: Mapping[str, Schema]) -> None:
        self._components = components
        self._places: dict[str, str] = {}
        """Objects that are written out, by the argument that has them first."""

    def shorten(self, schema: Schema, place: str = "") -> Schema:
        if "$ref" in schema:
            return self._shorten_named(schema["$ref"].removeprefix(REF), schema.get("description", ""), place)
        short: Schema = {word: _without_null(schema[word]) for word in _COPIED if word in schema}
        if text := _LEFT_OUT.sub("", schema.get("description", "")).strip():
            short["description"] = text
        if "items" in schema:
            short["items"] = self.shorten(schema["items"], place)
        if "properties" in schema:
            short["properties"] = {
                name: self.shorten(_describe_briefly(name, field), f"{place}.{name}".lstrip("."))
                for name, field in schema["properties"].items()
                if not _is_synonym(field)
            }
        if isinstance(schema.get("additionalProperties"), dict):
            short["additionalProperties"] = self.shorten(schema["additionalProperties"], place)
        options = [self.shorten(option, place) for option in schema.get("anyOf", []) if option != {"type": "null"}]
        if len(options) == 2 and options[1] == {"type": "array", "items": options[0]}:
            del options[0]  # one or several: a list has both
        return short | (options[0] | short if len(options) == 1 else {"anyOf": options}) if options else short

    def _shorten_named(self, name: str, description: str, place: str) -> Schema:
        """A field's own description counts; that of its type is for the reference."""
        named = self._components[name]
        if place and len(named.get("properties", {})) >= FEWEST_REFERRED:
            if first := self._places.get(name):
                return {"type": "object", "description": f"{description} Fields as in {first}.".strip()}
            self._places[name] = place
        return self.shorten(named | {"description": description}, place)


def _describe_briefly(name: str, field: Schema) -> Schema:
    return {**field, "description": ""} if name in OBVIOUS else field


def _is_synonym(field: Schema) -> bool:
    """A second name of another field: accepted, and not offered."""
    return str(field.get("description", "")).startswith("The same as ")


def _without_null(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    rest = [item for item in value if item not in {None, "null"}]
    return rest[0] if "null" in value and len(rest) == 1 else rest
