"""The reference page of a document: one self-contained HTML page."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from sapa.http.openapi import Document, scope_sentence
from sapa.http.schemas import REF, Schema, types_of

TEMPLATES = Path(__file__).parent / "templates"
METHODS = ("get", "post", "put", "patch", "delete")

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
    schema: str | None
    example: Any


class ErrorRow(Struct, frozen=True):
    """One error code, and what it can mean."""

    status: str
    code: str
    meanings: list[str]


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


class Webhook(Struct, frozen=True):
    kind: str
    summary: str
    text: str
    schema: str | None
    example: Any


def render_reference(document: Document) -> str:
    """The whole page; its policy allows only its own style and script."""
    content = document.content
    style, script = _read("reference.css"), _read("reference.js")
    return (
        _environment()
        .get_template("reference.html")
        .render(
            info=content["info"],
            server=content["servers"][0]["url"],
            groups=_groups(content),
            webhooks=[_webhook(kind, item["post"]) for kind, item in content["webhooks"].items()],
            delivery_headers=_delivery_headers(content["webhooks"]),
            refusals=_collect(_all_responses(content), content),
            error_example=content["components"]["schemas"]["ErrorEnvelope"]["examples"][0],
            schemas=_schemas(content),
            style=Markup(style),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704
            policy=_policy(style, script),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"prose": prose, "json": colour_json, "code": mark_code}
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


def _groups(content: Schema) -> dict[str, list[Operation]]:
    groups: dict[str, list[Operation]] = {tag["name"]: [] for tag in content["tags"]}
    for path, method, operation in _operations(content):
        groups[operation["tags"][0]].append(_operation(path, method, operation, content))
    return groups


def _operations(content: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, item in content["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def _operation(path: str, method: str, operation: Schema, content: Schema) -> Operation:
    components = content["components"]
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
        parameters=[_parameter(parameter) for parameter in operation["parameters"]],
        body=unfold(media["schema"], components["schemas"]) if media else [],
        body_schema=_schema_name(media.get("schema", {})),
        curl=build_curl(content["servers"][0]["url"], path, method, operation),
        answers=[
            _build_row(status, response) for status, response in operation["responses"].items() if status[0] in "23"
        ],
        refusals=_collect(operation["responses"].values(), content),
    )


def build_curl(server: str, path: str, method: str, operation: Schema) -> str:
    """A command that works when pasted into a shell that has the key in SAPA_KEY."""
    required = [parameter for parameter in operation["parameters"] if parameter.get("required")]
    for parameter in required:
        path = path.replace(f"{{{parameter['name']}}}", str(parameter["schema"].get("examples", ["…"])[0]))
    query = "&".join(
        f"{parameter['name']}={parameter['schema'].get('examples', ['…'])[0]}"
        for parameter in required
        if parameter["in"] == "query"
    )
    url = f"'{server}{path}?{query}'" if query else f"{server}{path}"
    lines = [f"curl {url}", *([] if method == "get" else [f"-X {method.upper()}"]), '-H "x-api-key: $SAPA_KEY"']
    if "requestBody" in operation:
        lines += _curl_body(operation["requestBody"]["content"])
    return " \\\n  ".join(lines)


def _curl_body(content: Schema) -> list[str]:
    if "application/json" not in content:
        return [f'-H "content-type: {next(iter(content))}"', "--data-binary @file"]
    body = json.dumps(content["application/json"]["example"], indent=2, ensure_ascii=False)
    return ['-H "content-type: application/json"', "-d '{}'".format(body.replace("'", "'\\''"))]


def _build_row(status: str, response: Schema) -> ResponseRow:
    media = response.get("content", {}).get("application/json", {})
    schema = media.get("schema", {})
    return ResponseRow(
        status=status,
        text=response["description"],
        schema=_schema_name(schema) or _schema_name(schema.get("properties", {}).get("data", {})),
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
        headers = [_parameter(parameter) for parameter in item["post"]["parameters"]]
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


def _schemas(content: Schema) -> list[tuple[str, str, list[SchemaField]]]:
    schemas = content["components"]["schemas"]
    return [
        (
            name,
            schema.get("description", ""),
            unfold(schema, {}) or [_field("value", {**schema, "description": ""}, True, 0)],
        )
        for name, schema in sorted(schemas.items())
        if "properties" in schema or "enum" in schema
    ]


def _build_value(schema: Schema) -> SchemaField:
    """The row of a schema that is not an object: an enum."""
    return _field("value", {**schema, "description": ""}, True, 0)


def unfold(schema: Schema, components: Mapping[str, Schema], depth: int = 0) -> list[SchemaField]:
    """The fields of an object, each followed by the fields of the objects it holds."""
    schema = components.get(_schema_name(schema) or "", schema)
    fields = []
    for name, field in schema.get("properties", {}).items():
        fields.append(_field(name, field, name in schema.get("required", []), depth))
        inner = _find_object(field)
        if inner is not None and _schema_name(inner) in components and depth < 4:
            fields += unfold(inner, components, depth + 1)
    return fields


def _find_object(schema: Schema) -> Schema | None:
    """The object inside a field: itself, a list's items, or the one that may be null."""
    if "items" in schema:
        return _find_object(schema["items"])
    if "anyOf" in schema:
        return next((inner for option in schema["anyOf"] if (inner := _find_object(option))), None)
    return schema if "$ref" in schema else None


def _parameter(parameter: Schema) -> SchemaField:
    required = parameter.get("required", False)
    return _field(parameter["name"], parameter["schema"], required, 0, parameter.get("description"), parameter["in"])


def _field(
    name: str, schema: Schema, required: bool, depth: int, text: str | None = None, place: str = ""
) -> SchemaField:
    inner = _find_object(schema)
    return SchemaField(
        name=name,
        depth=depth,
        kind=f"{place} · {describe_type(schema)}" if place else describe_type(schema),
        link=_schema_name(inner) if inner else None,
        required=required,
        text=text or schema.get("description", ""),
        rules=list(describe_rules(schema)),
        choices=[str(value) for value in schema.get("enum", []) if value is not None],
    )


def describe_type(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(describe_type(option) for option in schema["anyOf"])
    if "$ref" in schema:
        return _schema_name(schema) or ""
    kinds = types_of(schema)
    if "array" in kinds:
        kinds[kinds.index("array")] = f"list of {describe_type(schema['items'])}"
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
