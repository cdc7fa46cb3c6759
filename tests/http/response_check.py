"""Holds an answer against the OpenAPI documents. As a hook of httpx it watches every answer of a test run."""

import csv
from functools import lru_cache
from io import StringIO
from typing import Any

import httpx
from jsonschema_rs import Draft202012Validator

from sapa.domains import ROUTES
from sapa.http.endpoints import Base
from sapa.http.openapi import build_document

Schema = dict[str, Any]

# Headers of HTTP itself, of browsers' cross-origin rules and of caches: no document lists them.
UNDOCUMENTED_HEADERS = {"connection", "content-length", "content-type", "date", "server", "cache-control", "vary"}
UNROUTED_STATUSES = {400, 401, 404, 405, 429, 500, 503}


class Operation:
    """One operation of a document."""

    def __init__(self, document: Schema, path: str, method: str) -> None:
        self.path = path
        self.method = method
        self.content: Schema = document["paths"][path][method]
        self.id: str = self.content["operationId"]
        self._components = document["components"]

    @property
    def statuses(self) -> set[int]:
        return {int(status) for status in self.content["responses"]}

    def answer(self, status: int) -> Schema:
        """What the document says of an answer with this status."""
        assert status in self.statuses, f"{status} is not documented"
        return resolve(self.content["responses"][str(status)], self._components)


async def check_answer(response: httpx.Response) -> None:
    """A hook: `httpx.AsyncClient(event_hooks={"response": [check_answer]})`."""
    await response.aread()
    check(response.request, response)


def check(request: httpx.Request, response: httpx.Response) -> None:
    """Raises AssertionError when the answer is not one that the document promises."""
    # As it was sent: a percent-encoded slash belongs to its segment.
    path = request.url.raw_path.decode("ascii").partition("?")[0]
    base = next((base for base in Base if path.startswith(f"{base}/")), None)
    if base is None or path.removeprefix(base).startswith(("/openapi.json", "/docs")):
        return
    try:
        _check_against(document_of(base), request, response, base, path.removeprefix(base))
    except AssertionError as error:
        raise AssertionError(
            f"{request.method} {request.url} answered {response.status_code} outside its document: {error}\n"
            f"{response.headers}\n{response.text[:2000]}"
        ) from None


@lru_cache
def document_of(base: Base) -> Schema:
    return build_document(base, "", ROUTES).content


@lru_cache
def operations_of(base: Base) -> list[Operation]:
    document = document_of(base)
    return [Operation(document, path, method) for path, methods in document["paths"].items() for method in methods]


@lru_cache
def _list_candidates(base: Base) -> dict[tuple[int, str], list[tuple[list[str], Operation]]]:
    """Each operation with the segments of its path, by their number and by the first, which is never a parameter."""
    found: dict[tuple[int, str], list[tuple[list[str], Operation]]] = {}
    for operation in operations_of(base):
        parts = operation.path.split("/")
        assert not parts[1].startswith("{")
        found.setdefault((len(parts), parts[1]), []).append((parts, operation))
    return found


def find_operation(base: Base, method: str, path: str) -> Operation | None:
    """As the edge finds it: a fixed segment is preferred to a parameter, and HEAD is a GET."""
    method = "get" if method == "HEAD" else method.lower()
    segments = path.split("/")
    candidates = _list_candidates(base).get((len(segments), segments[1]), [])
    fits = [operation for parts, operation in candidates if _fits(parts, segments)]
    fits.sort(key=lambda operation: operation.path.count("{"))
    return next((op for op in fits if op.path == fits[0].path and op.method == method), None)


def _fits(parts: list[str], segments: list[str]) -> bool:
    return all(
        part == segment or (part.startswith("{") and segment) for part, segment in zip(parts, segments, strict=True)
    )


def _check_against(document: Schema, request: httpx.Request, response: httpx.Response, base: Base, path: str) -> None:
    operation = find_operation(base, request.method, path)
    if operation is None:
        _check_unrouted(document, request, response)
        return
    answer = operation.answer(response.status_code)
    _check_headers(document, answer, response)
    if request.method != "HEAD":
        _check_body(document, answer, response)


def _check_unrouted(document: Schema, request: httpx.Request, response: httpx.Response) -> None:
    """A path or method that no operation has: OPTIONS tells what there is, everything else is refused."""
    if request.method == "OPTIONS" and response.status_code == 204:
        assert "allow" in response.headers
        assert not response.content
        return
    assert response.status_code in UNROUTED_STATUSES, "an undocumented call was not refused"
    if request.method != "HEAD":
        _validate(document, {"$ref": "#/components/schemas/ErrorEnvelope"}, response.json())


def _check_headers(document: Schema, answer: Schema, response: httpx.Response) -> None:
    documented = {name.lower(): resolve(header, document["components"]) for name, header in answer["headers"].items()}
    for name, header in documented.items():
        if name in response.headers:
            _validate(document, header["schema"], _typed(response.headers[name], header["schema"]))
        else:
            assert not header["required"], f"the header {name} is missing"
    surplus = {name for name in response.headers if not name.startswith("access-control-")} - UNDOCUMENTED_HEADERS
    assert surplus <= documented.keys(), f"the headers {surplus - documented.keys()} are not documented"


def _check_body(document: Schema, answer: Schema, response: httpx.Response) -> None:
    if "content" not in answer:
        assert not response.content, "a body where none is documented"
        return
    media = answer["content"].get(response.headers["content-type"])
    assert media is not None, f"the content type {response.headers['content-type']} is not documented"
    if media["schema"].get("contentMediaType") == "application/pdf":
        assert response.content.startswith(b"%PDF-")
        return
    if media["schema"].get("contentMediaType") == "text/csv":
        assert len({len(row) for row in csv.reader(StringIO(response.text), strict=True)}) == 1
        return
    body = response.json()
    _validate(document, media["schema"], body)
    if "x-sapa-codes" in answer:
        assert body["error"]["code"] in answer["x-sapa-codes"], f"the code {body['error']['code']} is not documented"


def _typed(text: str, schema: Schema) -> Any:
    return int(text) if schema["type"] == "integer" else text


def resolve(node: Schema, components: Schema) -> Schema:
    """The node itself, or the component that it refers to."""
    if "$ref" not in node:
        return node
    kind, name = node["$ref"].removeprefix("#/components/").split("/", 1)
    found: Schema = components[kind][name]
    return found


def _validate(document: Schema, schema: Schema, value: Any) -> None:
    errors = [f"{error.instance_path}: {error.message}" for error in validator(document, schema).iter_errors(value)]
    assert not errors, "; ".join(errors)


_validators: dict[tuple[int, str], Draft202012Validator] = {}


def validator(document: Schema, schema: Schema) -> Draft202012Validator:
    """Validates formats too, and refuses fields that the document does not know."""
    place = (id(document), repr(schema))
    if place not in _validators:
        schemas = document["components"]["schemas"]
        needed = {name: _closed(schemas[name]) for name in _names_in(schema, schemas)}
        root = {**_closed(schema), "components": {"schemas": needed}}
        _validators[place] = Draft202012Validator(root, validate_formats=True)
    return _validators[place]


def _names_in(schema: Schema, schemas: Schema) -> set[str]:
    """The components that it refers to, also by way of others: making a validator of all of them takes long."""
    names: set[str] = set()
    unseen: list[Any] = [schema]
    while unseen:
        node = unseen.pop()
        if isinstance(node, dict):
            name = str(node.get("$ref", "")).removeprefix("#/components/schemas/")
            if name in schemas and name not in names:
                names.add(name)
                unseen.append(schemas[name])
            unseen += node.values()
        elif isinstance(node, list):
            unseen += node
    return names


def _closed(schema: Schema) -> Schema:
    return {"additionalProperties": False, **schema} if "properties" in schema and "type" in schema else schema
