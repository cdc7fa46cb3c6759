"""What the SDKs offer, read from the declarations: operations, models, events and errors, for any language."""

import re
from collections.abc import Iterator, Sequence
from inspect import cleandoc
from typing import Any, get_origin

from msgspec import Struct

from sapa.events import CATALOGUE
from sapa.http.endpoints import Base, Endpoint, Routes, camel
from sapa.http.errors import ApiError
from sapa.http.openapi import TruncatedResource, build_document
from sapa.http.openapi_responses import list_edge_errors
from sapa.http.responses import Paging
from sapa.http.schemas import REF, Schema, SchemaRegistry
from sapa.values.ids import IdKind, NumberKind

JSON = "application/json"
ANY_FILE = "application/octet-stream"
METHODS = {
    "list_timeline_entries": "customers.timeline",
    "commit_point_reservation": "loyalty.commit_reservation",
    "release_point_reservation": "loyalty.release_reservation",
    "commit_redemption": "redemptions.commit",
    "release_redemption": "redemptions.release",
    "fail_redemption": "redemptions.fail",
    "list_redemptions": "redemptions.list",
    "get_redemption_summary": "redemptions.summary",
    "advance_sandbox_shipment": "shipments.advance_in_sandbox",
    "get_agent_report": "analytics.agents",
    "reply_to_ticket": "tickets.reply",
    "react_to_message": "messages.react",
    "return_shipment": "shipments.create_return",
    "get_message_costs": "costs.get",
    "export_message_costs": "costs.export",
    "list_shipment_notifications": "shipments.list_notifications",
    "list_cod_differences": "cash_on_delivery.list_differences",
    "get_cod_difference": "cash_on_delivery.get_difference",
    "resolve_cod_difference": "cash_on_delivery.resolve_difference",
    "open_sandbox_carrier_accounts": "sandbox.open_carrier_accounts",
    "get_sandbox_cod_statement": "sandbox.get_cod_statement",
    "simulate_inbound_message": "sandbox.receive",
}
"""Operations whose name without the resource's noun would read badly, or that belong to another resource."""
ARGUMENTS = {"messageId2": "messageId"}
"""Path parameters whose name on the wire says less than it could."""


class Plain(Struct, frozen=True):
    """A value without parts: string, integer, number, decimal, boolean, date-time, date, null or any."""

    name: str


class Ref(Struct, frozen=True):
    """A model or an enum, by its name."""

    name: str


class Words(Struct, frozen=True):
    """One of these strings."""

    words: tuple[str, ...]


class ListOf(Struct, frozen=True):
    item: "Type"


class MapOf(Struct, frozen=True):
    value: "Type"


class OneOf(Struct, frozen=True):
    options: tuple["Type", ...]


Type = Plain | Ref | Words | ListOf | MapOf | OneOf
ANY = Plain("any")
NULL = Plain("null")


class Field(Struct, frozen=True):
    """A field of a model, or a parameter of a call."""

    name: str
    """As it is on the wire."""
    type: Type
    is_required: bool
    description: str = ""

    @property
    def is_nullable(self) -> bool:
        return self.type == ANY or (isinstance(self.type, OneOf) and NULL in self.type.options)


class Model(Struct, frozen=True):
    name: str
    description: str
    fields: tuple[Field, ...]
    tag: tuple[str, str] | None = None
    """The field that tells it from the other options of a union, and the field's value."""


class EnumType(Struct, frozen=True):
    name: str
    description: str
    words: tuple[str, ...]


class Argument(Struct, frozen=True):
    """A parameter in the path."""

    name: str
    wire: str
    is_number: bool


class Operation(Struct, frozen=True):
    """One method of a resource."""

    id: str
    resource: str
    name: str
    method: str
    path: str
    """With the base, and parameters in braces."""
    summary: str
    description: str
    arguments: tuple[Argument, ...]
    query: tuple[Field, ...]
    body: Model | None
    file_types: tuple[str, ...]
    """The media types of which the body is a file, if it is one."""
    result: Type | None
    """What is in `data`, or the whole page of a list; None without a body."""
    returns_file: bool
    may_wait: bool
    """Whether the file is made by a job: until then the response has none."""
    paging: Paging | None
    item: Type | None
    """What a page of a list holds."""
    status: int
    example: Any
    """The documented body of the response."""

    @property
    def writes(self) -> bool:
        return self.method != "GET"


class Resource(Struct, frozen=True):
    name: str
    description: str
    operations: tuple[Operation, ...]


class EventType(Struct, frozen=True):
    kind: str
    description: str
    data: str
    example: Any


class ErrorCode(Struct, frozen=True):
    code: str
    status: int
    description: str


class Surface(Struct, frozen=True):
    resources: tuple[Resource, ...]
    models: tuple[Model, ...]
    enums: tuple[EnumType, ...]
    events: tuple[EventType, ...]
    errors: tuple[ErrorCode, ...]
    received: frozenset[str]
    """The models that responses and events hold. They are read leniently: new fields and words do no harm."""

    @property
    def operations(self) -> Iterator[Operation]:
        return (operation for resource in self.resources for operation in resource.operations)


def read_surface(domains: Sequence[Routes]) -> Surface:
    documents = {base: build_document(base, "", domains, SchemaRegistry(marks_decimals=True)).content for base in Base}
    models = _Models(_merge(documents))
    endpoints = [endpoint for routes in domains for endpoint in routes.endpoints]
    operations = [_read_operation(endpoint, documents[endpoint.routes.base], models) for endpoint in endpoints]
    if unknown := sorted(METHODS.keys() - {operation.id for operation in operations}):
        raise TypeError(f"METHODS names operations that do not exist: {', '.join(unknown)}.")
    events = _read_events(documents, models)
    sent = models.collect(Ref(operation.body.name) for operation in operations if operation.body)
    results = [result for operation in operations if (result := operation.result) is not None]
    received = models.collect([*results, *(Ref(event.data) for event in events), Ref(TruncatedResource.__name__)])
    used = sent | received | models.collect(field.type for operation in operations for field in operation.query)
    return Surface(
        resources=_group(operations, _describe_resources(domains)),
        models=tuple(models.model(name) for name in sorted(used) if models.is_model(name)),
        enums=tuple(models.enum(name) for name in sorted(used) if not models.is_model(name)),
        events=events,
        errors=_read_errors(endpoints),
        received=frozenset(received),
    )


def _merge(documents: dict[Base, Schema]) -> dict[str, Schema]:
    """The schemas of all documents. A name in two of them means the same, apart from examples."""
    merged: dict[str, Schema] = {}
    for document in documents.values():
        for name, schema in document["components"]["schemas"].items():
            if _without_examples(merged.setdefault(name, schema)) != _without_examples(schema):
                raise TypeError(f"{name} is not the same in both documents. Rename one.")
    return merged


def _without_examples(node: Any) -> Any:
    if isinstance(node, dict):
        return {name: _without_examples(value) for name, value in node.items() if name != "examples"}
    return [_without_examples(value) for value in node] if isinstance(node, list) else node


class _Models:
    """The named schemas, as types of the SDKs."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self._schemas = schemas
        self._tags = dict(_list_tags(list(schemas.values())))

    def is_model(self, name: str) -> bool:
        return "properties" in self._schemas[name]

    def model(self, name: str) -> Model:
        schema = self._schemas[name]
        tag_field = self._tags.get(name)
        fields = tuple(
            _read_field(field_name, field, field_name in schema.get("required", []))
            for field_name, field in schema["properties"].items()
            if field_name != tag_field
        )
        tag = None if tag_field is None else (tag_field, schema["properties"][tag_field]["enum"][0])
        return Model(name, schema.get("description", ""), fields, tag)

    def enum(self, name: str) -> EnumType:
        schema = self._schemas[name]
        return EnumType(name, schema.get("description", ""), tuple(schema["enum"]))

    def resolve(self, schema: Schema) -> Schema:
        return self._schemas[schema["$ref"].removeprefix(REF)] if "$ref" in schema else schema

    def collect(self, roots: Any) -> set[str]:
        """The names of everything that these types and models are made of."""
        found: set[str] = set()
        waiting = [name for root in roots for name in _names_in(root)]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += _names_in(self.model(name)) if self.is_model(name) else []
        return found


def _list_tags(node: Any) -> Iterator[tuple[str, str]]:
    """Model → the field that discriminates it."""
    if isinstance(node, dict):
        for reference in node.get("discriminator", {}).get("mapping", {}).values():
            yield reference.removeprefix(REF), node["discriminator"]["propertyName"]
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from _list_tags(child)


def _names_in(part: Type | Model) -> list[str]:
    if isinstance(part, Model):
        return [name for field in part.fields for name in _names_in(field.type)]
    if isinstance(part, Ref):
        return [part.name]
    if isinstance(part, OneOf):
        return [name for option in part.options for name in _names_in(option)]
    inner = part.item if isinstance(part, ListOf) else part.value if isinstance(part, MapOf) else None
    return [] if inner is None else _names_in(inner)


def _read_operation(endpoint: Endpoint, document: Schema, models: _Models) -> Operation:
    declared = document["paths"][endpoint.path][endpoint.method.lower()]
    resource, name = name_method(declared["operationId"], endpoint.routes.resource)
    content = declared.get("requestBody", {}).get("content", {})
    response = declared["responses"][str(endpoint.status)]
    contents: dict[str, Schema] = response.get("content") or {"": {}}
    ((media_type, media),) = contents.items()
    result = _read_result(media, models) if media_type == JSON else None
    paging = getattr(get_origin(endpoint.result) or endpoint.result, "paging", None)
    page = models.resolve(media["schema"])["properties"] if paging else {}
    return Operation(
        id=declared["operationId"],
        resource=resource,
        name=name,
        method=endpoint.method,
        path=endpoint.routes.base + endpoint.path,
        summary=declared["summary"],
        description=declared["description"],
        arguments=tuple(_read_argument(camel(name), kind) for name, kind in endpoint.path_ids.items()),
        query=tuple(
            _read_field(one["name"], one["schema"] | {"description": one.get("description", "")}, "required" in one)
            for one in declared["parameters"]
            if one["in"] == "query"
        ),
        body=_read_body(content, models),
        file_types=() if JSON in content else tuple(content),
        result=read_type(media["schema"]) if paging else result,
        returns_file=media_type not in {"", JSON},
        may_wait=media_type not in {"", JSON} and "202" in declared["responses"],
        paging=paging,
        item=read_type(page["data"]["items"]) if paging else None,
        status=endpoint.status,
        example=media.get("example"),
    )


def name_method(operation_id: str, resource: str) -> tuple[str, str]:
    """The resource and method of an operation: its name without the resource's noun.

    `list_reward_redeemers` of the resource `rewards` is `rewards.list_redeemers`.
    """
    if operation_id in METHODS:
        resource, name = METHODS[operation_id].split(".")
        return resource, name
    words = operation_id.split("_")
    singular = resource.removesuffix("ies") + "y" if resource.endswith("ies") else resource.removesuffix("s")
    for noun in (resource.split("_"), singular.split("_")):
        for start in range(1, len(words) - len(noun) + 1):
            if words[start : start + len(noun)] == noun:
                return resource, "_".join([*words[:start], *words[start + len(noun) :]])
    return resource, operation_id


def _read_argument(wire: str, kind: IdKind | None) -> Argument:
    return Argument(ARGUMENTS.get(wire, wire), wire, isinstance(kind, NumberKind))


def _read_body(content: Schema, models: _Models) -> Model | None:
    if JSON not in content:
        return None
    return models.model(content[JSON]["schema"]["$ref"].removeprefix(REF))


def _read_result(media: Schema, models: _Models) -> Type:
    return read_type(models.resolve(media["schema"])["properties"]["data"])


def _read_field(name: str, schema: Schema, is_required: bool) -> Field:
    return Field(name, read_type(schema), is_required, " ".join(schema.get("description", "").split()))


def read_type(schema: Schema) -> Type:
    if "$ref" in schema:
        return Ref(schema["$ref"].removeprefix(REF))
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _unite([read_type(option) for option in options])
    kinds = schema.get("type", "any")
    if isinstance(kinds, list):
        words = {"enum": [word for word in schema["enum"] if word is not None]} if "enum" in schema else {}
        return _unite([NULL if kind == "null" else read_type({**schema, **words, "type": kind}) for kind in kinds])
    if "enum" in schema and kinds == "string":
        return Words(tuple(schema["enum"]))
    if kinds == "array":
        return ListOf(read_type(schema.get("items", {})))
    if kinds == "object":
        if "properties" in schema:
            raise TypeError(f"An object without a name: {schema}. Declare it as a struct.")
        return MapOf(read_type(schema.get("additionalProperties") or {}))
    has_own_type = schema.get("format") in {"decimal", "date-time", "date"}
    return Plain(schema["format"] if has_own_type else kinds)


def _unite(options: list[Type]) -> Type:
    unique = tuple(dict.fromkeys(options))
    return unique[0] if len(unique) == 1 else OneOf(unique)


def _group(operations: list[Operation], descriptions: dict[str, str]) -> tuple[Resource, ...]:
    grouped: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        methods = grouped.setdefault(operation.resource, {})
        if (other := methods.setdefault(operation.name, operation)) is not operation:
            method = f"{operation.resource}.{operation.name}"
            raise TypeError(f"{other.id} and {operation.id} are both {method}. Declare another with `sdk=`.")
    return tuple(
        Resource(name, descriptions.get(name, ""), tuple(methods.values())) for name, methods in sorted(grouped.items())
    )


def _describe_resources(domains: Sequence[Routes]) -> dict[str, str]:
    texts = {routes.tag: routes.about for routes in domains if routes.about}
    named = {routes.resource: texts.get(routes.tag, "") for routes in domains}
    return named | {routes.resource: routes.about for routes in domains if routes.about}


def _read_events(documents: dict[Base, Schema], models: _Models) -> tuple[EventType, ...]:
    events = []
    for kind, event in CATALOGUE.items():
        if event.__module__.startswith("sapa."):  # tests declare some of their own
            media = documents[event.base]["webhooks"][kind]["post"]["requestBody"]["content"][JSON]
            data = media["schema"]["oneOf"][0]["$ref"].removeprefix(REF)
            events.append(EventType(kind, cleandoc(event.__doc__ or ""), data, media["example"]))
    return tuple(sorted(events, key=lambda event: event.kind))


def _read_errors(endpoints: Sequence[Endpoint]) -> tuple[ErrorCode, ...]:
    """Every code that a call can get; of errors that share one, the first to be declared describes it."""
    found: dict[str, ErrorCode] = {}
    for endpoint in endpoints:
        for error in [*list_edge_errors(endpoint), *endpoint.raises]:
            known = found.setdefault(error.code, ErrorCode(error.code, error.status, _describe(error)))
            if known.status != error.status:
                raise TypeError(f"{error.code} has the statuses {known.status} and {error.status}. Use one.")
    return tuple(found[code] for code in sorted(found))


def _describe(error: type[ApiError]) -> str:
    """Its message as a sentence."""
    text = re.sub(r"\s+", " ", error.summary())
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
