"""The OpenAPI document of a base, built from the declared endpoints and events."""

from collections.abc import Iterator, Sequence
from inspect import cleandoc
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from sapa.events import CATALOGUE, EVENT_ID, Event
from sapa.http.bodies import UPLOADED_TYPES
from sapa.http.endpoints import Base, Endpoint, Routes, camel
from sapa.http.idempotency import LONGEST_KEY
from sapa.http.openapi_responses import ERROR_EXAMPLES, ErrorResponses, describe_headers, header_components
from sapa.http.query_string import list_filters
from sapa.http.responses import FILE_TYPES, OWN_STATUSES, is_envelope
from sapa.http.schemas import Schema, SchemaRegistry, build_example, id_kind_of, is_struct, share_examples

VERSION = "1.0.0"
INFO: dict[Base, Schema] = {
    Base.CUSTOMER: {
        "title": "Sapa customer API",
        "description": "Customers, orders, products, loyalty and shipping of the company that the API key belongs to, "
        "and the management of its webhooks, keys and connections.",
    },
    Base.MESSAGING: {
        "title": "Sapa messaging API",
        "description": "Messaging, request history and agent analytics of the company that the API key belongs to.",
    },
}
CONTACT: Schema = {"name": "The operator of this installation"}
LICENSE: Schema = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
SECURITY_SCHEMES: Schema = {
    "apiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "A key of one company: svc_live_… for its live data, svc_test_… for its test data.",
    }
}
IDEMPOTENCY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Makes the call happen once: for 24 hours the same key with the same body gets the first answer.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_KEY,
        "pattern": "^[!-~]([ -~]*[!-~])?$",
        "examples": ["signup-1042"],
    },
}
FILE_BODY: Schema = {
    "required": True,
    "content": {
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {"file": {"type": "string", "format": "binary"}},
                "required": ["file"],
            }
        },
    },
}
"""A file, with any media type or in a form."""
IF_NONE_MATCH: Schema = {
    "name": "If-None-Match",
    "in": "header",
    "description": "ETags that the caller knows: 304 without a body while the resource is still the same.",
    "schema": {"type": "string", "examples": ['"6d1f3a0c5b7e92d4a8c1f60b3e5d7a92"']},
}
DELIVERY_HEADERS: dict[str, tuple[str, Schema]] = {
    "User-Agent": ("Who delivers.", {"type": "string", "const": "Service-Webhooks/1.0"}),
    "X-Service-Webhook-Id": (
        "The event's id. A repeated delivery carries the same one.",
        {"type": "string", "pattern": EVENT_ID.pattern, "examples": [EVENT_ID.example]},
    ),
    "X-Service-Webhook-Event": ("The kind of event.", {"type": "string"}),
    "X-Service-Webhook-Timestamp": (
        "When this attempt was made, in Unix seconds.",
        {"type": "string", "pattern": "^[0-9]+$", "examples": ["1769851800"]},
    ),
    "X-Service-Webhook-Signature": (
        "`t` is the timestamp. `v1` is the hexadecimal HMAC-SHA256, keyed with the endpoint's signing secret, of the "
        "timestamp, a dot and the raw body.",
        {
            "type": "string",
            "pattern": "^t=[0-9]+(,v1=[0-9a-f]{64})+$",
            "examples": ["t=1769851800,v1=" + "5f0c9a3e" * 8],
        },
    ),
    "webhook-id": (
        "The event's id once more, for the libraries of Standard Webhooks.",
        {"type": "string", "pattern": EVENT_ID.pattern, "examples": [EVENT_ID.example]},
    ),
    "webhook-timestamp": (
        "The timestamp once more, for the same libraries.",
        {"type": "string", "pattern": "^[0-9]+$", "examples": ["1769851800"]},
    ),
    "webhook-signature": (
        "`v1,` and the base64 HMAC-SHA256 of id, timestamp and raw body, joined by dots; the key is what the secret's "
        "base64 after `whsec_` stands for. While a secret is rotated there are two, with a blank between.",
        {
            "type": "string",
            "pattern": "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$",
            "examples": ["v1,D+gBFWLsYEa9OSewHroZp6Ri3aN6/hp6v1PQuhZacmM="],
        },
    ),
}


class TruncatedResource(msgspec.Struct, frozen=True):
    """What is delivered in place of a resource of more than 64 KB: where to read it, or null if it was deleted."""

    id: Annotated[str, msgspec.Meta(examples=["cust_01jc9y3q5me8w92v7x4t6r0n1k"])]
    truncated: Literal[True]
    url: Annotated[
        str | None,
        msgspec.Meta(examples=["https://sapa.example.com/customer/v1/customers/cust_01jc9y3q5me8w92v7x4t6r0n1k"]),
    ]


class Document:
    """An OpenAPI 3.1 document."""

    def __init__(self, content: Schema) -> None:
        self.content = content

    def encode(self) -> bytes:
        return msgspec.json.encode(self.content)


def build_document(
    base: Base, server: str, domains: Sequence[Routes], schemas: SchemaRegistry | None = None
) -> Document:
    """All endpoints and events of a base."""
    served = [routes for routes in domains if routes.base == base]
    writer = _Writer([endpoint for routes in served for endpoint in routes.endpoints], schemas or SchemaRegistry())
    content: Schema = {
        "openapi": "3.1.0",
        "info": {**INFO[base], "version": VERSION, "contact": {**CONTACT, "url": server}, "license": LICENSE},
        "servers": [{"url": server + base}],
        "security": [{"apiKey": []}],
        "tags": _describe_tags(served),
        "paths": writer.paths(),
        "webhooks": writer.webhooks(base),
        "components": writer.components(),
    }
    _drop_unused(content, "headers")
    _add_examples(content)
    return Document(content)


def scope_sentence(scope: str, product: str | None) -> str:
    """The scope and product that a call needs: the end of its description."""
    return f"Needs the scope `{scope}`" + (f" and the product `{product}`." if product else ".")


class _Writer:
    """Builds the operations of one document and its shared components."""

    def __init__(self, endpoints: list[Endpoint], schemas: SchemaRegistry) -> None:
        self._endpoints = endpoints
        self._schemas = schemas
        self._error_responses = ErrorResponses(self._schemas)

    def paths(self) -> Schema:
        paths: Schema = {}
        names = [endpoint.handler.__name__ for endpoint in self._endpoints]
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise TypeError(f"Two handlers under one base are called {', '.join(duplicates)}; rename one.")
        for endpoint in self._endpoints:
            paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = self._operation(endpoint)
        return paths

    def webhooks(self, base: Base) -> Schema:
        events = [event for event in CATALOGUE.values() if event.base == base]
        return {event.kind: {"post": self._webhook(event)} for event in events}

    def components(self) -> Schema:
        return {
            "schemas": self._schemas.components,
            "responses": self._error_responses.shared,
            "headers": header_components(),
            "securitySchemes": SECURITY_SCHEMES,
        }

    def _operation(self, endpoint: Endpoint) -> Schema:
        summary, text = _split_doc(endpoint.handler.__doc__)
        product = endpoint.routes.product
        operation: Schema = {
            "operationId": endpoint.handler.__name__,
            "tags": [endpoint.routes.tag],
            "summary": summary,
            "description": f"{text}\n\n{scope_sentence(endpoint.scope, product)}".lstrip(),
            "x-sapa-scope": str(endpoint.scope),
            **({"x-sapa-product": str(product)} if product else {}),
            **({"deprecated": True} if endpoint.retirement else {}),
            "parameters": self._parameters(endpoint),
            "responses": self._successes(endpoint) | self._error_responses.of(endpoint),
        }
        if endpoint.takes_file:
            operation["requestBody"] = FILE_BODY
        if endpoint.body is not None:
            file = {media_type: {"schema": {"type": "string", "minLength": 1}} for media_type in UPLOADED_TYPES}
            content = file if endpoint.uploads else _json(self._schemas.describe_request(endpoint.body))
            operation["requestBody"] = {"required": endpoint.needs_body, "content": content}
        return operation

    def _parameters(self, endpoint: Endpoint) -> list[Schema]:
        parameters = [
            {
                "required": True,
                "description": _describe_id(name),
                **_parameter("path", camel(name), self._schemas.describe_request(endpoint.parameters[name])),
            }
            for name in endpoint.path_ids
        ]
        query = self._schemas.query(endpoint.query) if endpoint.query else {}
        filters = list_filters(endpoint.query) if endpoint.query else ()
        for name, schema in query.get("properties", {}).items():
            required = {"required": True} if name in query.get("required", []) else {}
            may_be_empty = {"allowEmptyValue": True} if name in filters else {}
            parameters.append(required | _parameter("query", name, schema) | may_be_empty)
        if endpoint.writes:
            parameters.append(IDEMPOTENCY_KEY)
        if endpoint.has_etag:
            parameters.append(IF_NONE_MATCH)
        return parameters

    def _successes(self, endpoint: Endpoint) -> Schema:
        responses = {str(status): self._success(endpoint, status, result) for status, result in _results(endpoint)}
        if endpoint.has_etag:
            responses["304"] = {"description": "Still the same.", "headers": describe_headers(304, ["ETag"])}
        return responses

    def _success(self, endpoint: Endpoint, status: int, result: Any) -> Schema:
        always = [*(["ETag"] if endpoint.has_etag else []), *(["Content-Disposition"] if result in FILE_TYPES else [])]
        headers = describe_headers(status, always, ["Idempotency-Replayed"] if endpoint.writes else [])
        descriptions = {
            201: "Created.",
            202: "Under way; its outcome is not known yet.",
            204: "Done; there is no body.",
        }
        response: Schema = {"description": descriptions.get(status, "Done."), "headers": headers}
        if media_type := FILE_TYPES.get(result):
            plain = media_type.partition(";")[0]
            response["content"] = {media_type: {"schema": {"type": "string", "contentMediaType": plain}}}
        elif result is not None:
            response["content"] = _json(self._envelope(result))
        if status == 201:
            response["links"] = self._links(result)
        return response

    def _envelope(self, result: Any) -> Schema:
        if is_envelope(result):
            return self._schemas.describe_response(result)
        return self._schemas.describe_envelope(result)

    def _links(self, result: Any) -> Schema:
        """From a new resource to every operation that takes its id."""
        kind = id_kind_of(get_type_hints(result, include_extras=True).get("id")) if is_struct(result) else None
        return {
            endpoint.handler.__name__: {
                "operationId": endpoint.handler.__name__,
                "parameters": {camel(*endpoint.path_ids): "$response.body#/data/id"},
            }
            for endpoint in self._endpoints
            if kind is not None and [*endpoint.path_ids.values()] == [kind]
        }

    def _webhook(self, event: type[Event]) -> Schema:
        summary, text = _split_doc(event.__doc__)
        return {
            "operationId": event.kind,
            "summary": summary,
            "description": text or summary,
            "security": [],
            "parameters": [_delivery_header(name, event) for name in DELIVERY_HEADERS],
            "requestBody": {"required": True, "content": _json(self._delivered(event))},
            "responses": {
                "2XX": {"description": "Received. Any other answer, or none within 30 seconds, is tried again."}
            },
        }

    def _delivered(self, event: type[Event]) -> Schema:
        return {
            "oneOf": [
                self._schemas.describe_response(event.resource_type),
                self._schemas.describe_response(TruncatedResource),
            ]
        }


def _describe_tags(served: Sequence[Routes]) -> list[Schema]:
    texts: dict[str, str] = {}
    for routes in served:
        texts[routes.tag] = texts.get(routes.tag) or routes.about
    return [{"name": tag, "description": text} for tag, text in texts.items()]


def _split_doc(doc: str | None) -> tuple[str, str]:
    summary, _, text = cleandoc(doc or "").partition("\n")
    return summary, text.strip()


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _parameter(place: str, name: str, schema: Schema) -> Schema:
    """A parameter; lists are comma-separated, so their values contain no commas."""
    parameter: Schema = {"name": name, "in": place}
    if "description" in schema:
        parameter["description"] = schema.pop("description")
    if schema.get("type") == "array":
        parameter |= {"style": "form", "explode": False}
        schema |= {"minItems": 1, "items": {"pattern": r"^[^,]*[^,\s][^,]*$", **schema["items"]}}
    return {**parameter, "schema": schema}


def _describe_id(name: str) -> str:
    """`The id of the reward option.` for `reward_option_id`."""
    noun = " ".join(name.split("_id")[0].split("_")) if "_id" in name else "resource"
    return f"The id of the {noun}."


def _delivery_header(name: str, event: type[Event]) -> Schema:
    text, schema = DELIVERY_HEADERS[name]
    if name == "X-Service-Webhook-Event":
        schema = {**schema, "const": event.kind}
    return {"name": name, "in": "header", "required": True, "description": text, "schema": schema}


def _results(endpoint: Endpoint) -> Iterator[tuple[int, Any]]:
    """The endpoint's results and their statuses: `Customer | Created[Customer]` is two responses."""
    is_union = get_origin(endpoint.result) in {Union, UnionType}
    for result in get_args(endpoint.result) if is_union else (endpoint.result,):
        if own_status := OWN_STATUSES.get(get_origin(result)):
            yield own_status, get_args(result)[0]
        elif result in {None, type(None)}:
            yield 204, None
        else:
            yield endpoint.status, result


def _drop_unused(content: Schema, kind: str) -> None:
    """Removes components that nothing refers to: linters warn of them."""
    used = set(_references(content))
    components = content["components"]
    components[kind] = {name: part for name, part in components[kind].items() if f"#/components/{kind}/{name}" in used}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for child in node.values():
            yield from _references(child)
    elif isinstance(node, list):
        for child in node:
            yield from _references(child)


def _add_examples(content: Schema) -> None:
    """Gives every object, and every body without one, an example made of its fields' examples."""
    components = content["components"]["schemas"]
    share_examples(components)
    for name, schema in components.items():
        if "properties" in schema:
            schema["examples"] = [ERROR_EXAMPLES.get(name) or build_example(schema, components)]
    for media in _media_types(content):
        if "examples" not in media:
            media["example"] = build_example(media["schema"], components)


def _media_types(node: Any) -> Iterator[Schema]:
    if isinstance(node, dict):
        if isinstance(node.get("application/json"), dict):
            yield node["application/json"]
        for child in node.values():
            yield from _media_types(child)
