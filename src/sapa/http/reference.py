"""The reference of a document: an overview, a page for each tag and one for webhooks, each self-contained HTML."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from sapa.http.errors import MethodNotAllowed
from sapa.http.openapi import Document, scope_sentence
from sapa.http.openapi_responses import ERROR_EXAMPLES
from sapa.http.reference_pages import OVERVIEW, WEBHOOKS, Links, slug_of
from sapa.http.schemas import REF, Schema, types_of

TEMPLATES = Path(__file__).parent / "templates"
METHODS = ("get", "post", "put", "patch", "delete")
DEEPEST = 4
NO_COMPONENTS: Mapping[str, Schema] = {}

SPANS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", "character"),
    ("minItems", "maxItems", "item"),
    ("minProperties", "maxProperties", "key"),
)

_TOKENS = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*"(?=:))|(?P<text>"(?:[^"\\]|\\.)*")|(?P<word>-?\b[\w.]+\b)')
_CODE = re.compile(r"`([^`]+)`")


class SchemaField(Struct, frozen=True):
    """One row of a table of fields or parameters."""

    name: str
    depth: int
    kind: str
    link: str | None
    required: bool
    text: str
    rules: list[str]
    choices: list[str]


class ResponseRow(Struct, frozen=True):
    """A success of an operation."""

    status: str
    text: str
    kind: str
    link: str | None
    example: Any


class ErrorRow(Struct, frozen=True):
    """One error code, and what it can mean."""

    status: str
    code: str
    meanings: list[str]


NO_SUCH_METHOD = ErrorRow(str(MethodNotAllowed.status), MethodNotAllowed.code, [MethodNotAllowed.summary()])
"""No operation of the document gets it."""


class ContentsEntry(Struct, frozen=True):
    """An operation in the contents."""

    id: str
    method: str
    path: str
    summary: str


class Operation(Struct, frozen=True):
    id: str
    method: str
    path: str
    summary: str
    text: str
    scope: str
    product: str | None
    parameters: list[SchemaField]
    body: list[SchemaField]
    body_schema: str | None
    curl: str
    answers: list[ResponseRow]
    refusals: list[ErrorRow]


class ShownSchema(Struct, frozen=True):
    name: str
    text: str
    fields: list[SchemaField]


class Webhook(Struct, frozen=True):
    kind: str
    summary: str
    text: str
    schema: str | None
    example: Any


def render_page(document: Document, page: str, are_files: bool = False) -> str:
    """One page, named by the last segment of its address. Its policy allows only its own style and script."""
    content = document.content
    style, script = _read("reference.css"), _read("reference.js")
    homes = _assign_homes(content)
    shown = {
        "page": page,
        "links": Links(page, homes, are_files),
        "info": content["info"],
        "tags": content["tags"],
        "contents": _list_contents(content),
        "kinds": [*content["webhooks"]],
        "names": [name for name in sorted(homes) if _is_shown(content["components"]["schemas"][name])],
        "schemas": _schemas(content, [name for name in sorted(homes) if homes[name] == page]),
        "style": Markup(style),  # noqa: S704 - our own file
        "script": Markup(script),  # noqa: S704
        "policy": _policy(style, script),
    }
    if page == OVERVIEW:
        return _render("overview.html", **shown, **_overview(content))
    if page == WEBHOOKS:
        return _render("webhooks.html", **shown, **_webhooks(content["webhooks"]))
    return _render("tag.html", **shown, **_tag(content, page))


def _render(template: str, **shown: Any) -> str:
    return _environment().get_template(template).render(shown)


def _overview(content: Schema) -> Schema:
    refusals = [*_collect(_all_responses(content), content), NO_SUCH_METHOD]
    return {
        "server": content["servers"][0]["url"],
        "refusals": sorted(refusals, key=attrgetter("status", "code")),
        "error_example": ERROR_EXAMPLES["ErrorEnvelope"],
    }


def _webhooks(webhooks: Schema) -> Schema:
    return {
        "webhooks": [_webhook(kind, item["post"]) for kind, item in webhooks.items()],
        "delivery_headers": _delivery_headers(webhooks),
    }


def _tag(content: Schema, page: str) -> Schema:
    operations = [
        _operation(path, method, operation, content)
        for path, method, operation in _operations(content)
        if slug_of(operation["tags"][0]) == page
    ]
    return {"tag": next(tag for tag in content["tags"] if slug_of(tag["name"]) == page), "operations": operations}


def _list_contents(content: Schema) -> dict[str, list[ContentsEntry]]:
    """The operations of each tag, for the contents that every page has."""
    entries: dict[str, list[ContentsEntry]] = {tag["name"]: [] for tag in content["tags"]}
    for path, method, operation in _operations(content):
        entry = ContentsEntry(operation["operationId"], method.upper(), path, operation["summary"].rstrip("."))
        entries[operation["tags"][0]].append(entry)
    return entries


def _assign_homes(content: Schema) -> dict[str, str]:
    """Each schema is shown on the first page that uses it."""
    schemas = content["components"]["schemas"]
    users = [(OVERVIEW, content["components"]["responses"])]
    users += [(slug_of(operation["tags"][0]), operation) for _, _, operation in _operations(content)]
    users += [(WEBHOOKS, content["webhooks"])]
    homes: dict[str, str] = {}
    for page, user in users:
        for name in _names_in(user, schemas):
            homes.setdefault(name, page)
    return homes


def _names_in(node: Any, schemas: Schema) -> Iterator[str]:
    """The schemas that a part of the document refers to, also by way of others."""
    unseen, names = [node], set()
    while unseen:
        node = unseen.pop()
        if isinstance(node, dict):
            name = str(node.get("$ref", "")).removeprefix(REF)
            if name in schemas and name not in names:
                names.add(name)
                unseen.append(schemas[name])
                yield name
            unseen += node.values()
        elif isinstance(node, list):
            unseen += node


@lru_cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"prose": prose, "json": colour_json, "code": mark_code, "slug": slug_of}
    return environment


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text()


def _policy(style: str, script: str) -> str:
    own = {
        kind: base64.b64encode(sha256(text.encode()).digest()).decode()
        for kind, text in (("style", style), ("script", script))
    }
    return (
        f"default-src 'none'; style-src 'sha256-{own['style']}'; script-src 'sha256-{own['script']}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def prose(text: str) -> Markup:
    """Paragraphs, with `code` marked."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    return Markup("").join(Markup("<p>{}</p>").format(mark_code(paragraph)) for paragraph in paragraphs)


def mark_code(text: str) -> Markup:
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before it is marked


def colour_json(value: Any) -> Markup:
    """Indented JSON with its keys, texts and other values marked for the stylesheet."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    parts: list[Any] = []
    end = 0
    for token in _TOKENS.finditer(text):
        parts.append(escape(text[end : token.start()]))
        parts.append(Markup('<span class="j-{}">{}</span>').format(token.lastgroup, token[0]))
        end = token.end()
    return Markup("").join([*parts, escape(text[end:])])


def _operations(content: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, item in content["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def _operation(path: str, method: str, operation: Schema, content: Schema) -> Operation:
    schemas = content["components"]["schemas"]
    scope, product = operation["x-sapa-scope"], operation.get("x-sapa-product")
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"].rstrip("."),
        text=operation["description"].removesuffix(scope_sentence(scope, product)),
        scope=scope,
        product=product,
        parameters=[_parameter(parameter, schemas) for parameter in operation["parameters"]],
        body=unfold(media["schema"], schemas) if media else [],
        body_schema=_schema_name(media.get("schema", {})),
        curl=build_curl(content["servers"][0]["url"], path, method, operation),
        answers=[
            _build_row(status, response, schemas)
            for status, response in operation["responses"].items()
            if status[0] in "23"
        ],
        refusals=_collect(operation["responses"].values(), content),
    )


def build_curl(server: str, path: str, method: str, operation: Schema) -> str:
    """A command that works when pasted into a shell that has the key in SAPA_API_KEY."""
    required = [parameter for parameter in operation["parameters"] if parameter.get("required")]
    for parameter in required:
        path = path.replace(f"{{{parameter['name']}}}", str(parameter["schema"].get("examples", ["…"])[0]))
    query = "&".join(
        f"{parameter['name']}={parameter['schema'].get('examples', ['…'])[0]}"
        for parameter in required
        if parameter["in"] == "query"
    )
    url = f"'{server}{path}?{query}'" if query else f"{server}{path}"
    lines = [f"curl {url}", *([] if method == "get" else [f"-X {method.upper()}"]), '-H "x-api-key: $SAPA_API_KEY"']
    if "requestBody" in operation:
        lines += _curl_body(operation["requestBody"]["content"])
    return " \\\n  ".join(lines)


def _curl_body(content: Schema) -> list[str]:
    if "application/json" not in content:
        return [f'-H "content-type: {next(iter(content))}"', "--data-binary @file"]
    body = json.dumps(content["application/json"]["example"], indent=2, ensure_ascii=False)
    return ['-H "content-type: application/json"', "-d '{}'".format(body.replace("'", "'\\''"))]


def _build_row(status: str, response: Schema, schemas: Mapping[str, Schema]) -> ResponseRow:
    media = response.get("content", {}).get("application/json", {})
    body = media.get("schema", {})
    envelope = schemas.get(_schema_name(body) or "", {})
    shown = envelope["properties"]["data"] if _is_wrapper(envelope) else body
    return ResponseRow(
        status=status,
        text=response["description"],
        kind=describe_type(shown),
        link=_schema_name(_find_object(shown) or {}),
        example=media.get("example"),
    )


def _webhook(kind: str, operation: Schema) -> Webhook:
    media = operation["requestBody"]["content"]["application/json"]
    return Webhook(
        kind=kind,
        summary=operation["summary"],
        text=operation["description"] if operation["description"] != operation["summary"] else "",
        schema=_schema_name(media["schema"]["oneOf"][0]),
        example=media["example"],
    )


def _delivery_headers(webhooks: Schema) -> list[SchemaField]:
    """The headers of any delivery: those of the first event, with its kind as an example."""
    for kind, item in webhooks.items():
        headers = [_parameter(parameter, {}) for parameter in item["post"]["parameters"]]
        return [
            replace(
                header, rules=[rule.replace("always", "such as") if kind in rule else rule for rule in header.rules]
            )
            for header in headers
        ]
    return []


def _all_responses(content: Schema) -> list[Schema]:
    own = [response for _, _, operation in _operations(content) for response in operation["responses"].values()]
    return [*content["components"]["responses"].values(), *own]


def _collect(responses: Any, content: Schema) -> list[ErrorRow]:
    """The error codes of some responses, each once, with all its messages."""
    meanings: dict[tuple[str, str], dict[str, None]] = {}
    for response in responses:
        name = response.get("$ref", "").removeprefix("#/components/responses/")
        answer = content["components"]["responses"][name] if name else response
        media = answer.get("content", {}).get("application/json", {})
        for example in media.get("examples", {}).values():
            error = example["value"]["error"]
            meanings.setdefault((str(answer["x-sapa-status"]), error["code"]), {})[example["summary"]] = None
    return [ErrorRow(status, code, list(texts)) for (status, code), texts in sorted(meanings.items())]


def _schemas(content: Schema, names: list[str]) -> list[ShownSchema]:
    schemas = content["components"]["schemas"]
    return [
        ShownSchema(name, schemas[name].get("description", ""), unfold(schemas[name], schemas, deepest=0))
        for name in names
        if _is_shown(schemas[name])
    ]


def _is_shown(schema: Schema) -> bool:
    """Objects are. An enum's words are shown where it is used, and an object in an envelope as itself."""
    return "properties" in schema and not _is_wrapper(schema)


def _is_wrapper(schema: Schema) -> bool:
    return [*schema.get("properties", {})] == ["data"]


def unfold(
    schema: Schema, components: Mapping[str, Schema], depth: int = 0, deepest: int = DEEPEST
) -> list[SchemaField]:
    """The fields of an object, each followed by the fields of the objects it holds."""
    schema = components.get(_schema_name(schema) or "", schema)
    fields = []
    for name, field in schema.get("properties", {}).items():
        fields.append(_field(name, field, name in schema.get("required", []), depth, components))
        inner = _find_object(field)
        if inner is not None and _schema_name(inner) in components and depth < deepest:
            fields += unfold(inner, components, depth + 1, deepest)
    return fields


def _find_object(schema: Schema) -> Schema | None:
    """The object inside a field: itself, a list's items, or the one that may be null."""
    if "items" in schema:
        return _find_object(schema["items"])
    if "anyOf" in schema:
        return next((inner for option in schema["anyOf"] if (inner := _find_object(option))), None)
    return schema if "$ref" in schema else None


def _parameter(parameter: Schema, components: Mapping[str, Schema]) -> SchemaField:
    required = parameter.get("required", False)
    field = _field(parameter["name"], parameter["schema"], required, 0, components)
    return replace(field, kind=f"{parameter['in']} · {field.kind}", text=parameter.get("description", ""))


def _field(name: str, schema: Schema, required: bool, depth: int, components: Mapping[str, Schema]) -> SchemaField:
    inner = _find_object(schema)
    used = components.get(_schema_name(inner or {}) or "", {})
    return SchemaField(
        name=name,
        depth=depth,
        kind=describe_type(schema, components),
        link=_schema_name(inner) if inner and "enum" not in used else None,
        required=required,
        text=schema.get("description", ""),
        rules=list(describe_rules(schema)),
        choices=[str(value) for value in used.get("enum") or schema.get("enum", []) if value is not None],
    )


def describe_type(schema: Schema, components: Mapping[str, Schema] = NO_COMPONENTS) -> str:
    """A value's type in words. An enum is a string: its words are shown beside it."""
    if "anyOf" in schema:
        return " or ".join(describe_type(option, components) for option in schema["anyOf"])
    if "$ref" in schema:
        name = _schema_name(schema) or ""
        return "string" if "enum" in components.get(name, {}) else name
    kinds = types_of(schema)
    if "array" in kinds:
        kinds[kinds.index("array")] = f"list of {describe_type(schema['items'], components)}"
    return " or ".join(kinds)


def describe_rules(schema: Schema) -> Iterator[str]:
    """The constraints of a value, in words."""
    for least, most, unit in SPANS:
        if schema.get(least) or schema.get(most):
            yield _span(schema.get(least), schema.get(most), unit)
    if "format" in schema:
        yield str(schema["format"])
    if "const" in schema:
        yield f"always `{schema['const']}`"
    if isinstance(example := schema.get("examples", [None])[0], str):
        yield f"such as `{example}`"
    if "default" in schema:
        yield f"default `{json.dumps(schema['default']).strip(chr(34))}`"


def _span(least: int | None, most: int | None, unit: str) -> str:
    if most is None:
        return f"at least {least:,} {unit if least == 1 else unit + 's'}"
    return f"{f'{least:,} –' if least else 'at most'} {most:,} {unit}{'s' if unit and most != 1 else ''}".rstrip()


def _schema_name(schema: Schema) -> str | None:
    return schema["$ref"].removeprefix(REF) if "$ref" in schema else None
