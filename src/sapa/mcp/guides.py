"""The tool `read_docs`: the guides, and everything about one tool."""

from functools import lru_cache
from inspect import cleandoc
from pathlib import Path

import msgspec
from msgspec import Struct

from sapa.http.bodies import build_decoder, decode_body
from sapa.http.endpoints import Endpoint
from sapa.http.errors import Invalid
from sapa.http.openapi import scope_sentence
from sapa.http.schemas import SchemaRegistry
from sapa.mcp.arguments import Arguments, join_members
from sapa.mcp.input_schemas import build_result_schema
from sapa.mcp.tools import Catalogue, Tool, ToolAnnotations, ToolDefinition

NAME = "read_docs"
TOPIC = "topic"
GUIDES = (
    "analytics", "consent", "importing", "loyalty", "management", "messaging", "orders", "shipping", "support",
    "webhooks",
)  # fmt: skip

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "guides", _PACKAGE.parents[1] / "docs")
"""In a wheel, and in the repository."""

DOCS_TOOL = ToolDefinition(
    NAME,
    "Read a guide, or everything about one tool: all rules, limits, results and errors.",
    {
        "type": "object",
        "properties": {
            TOPIC: {"type": "string", "description": f"A guide ({', '.join(GUIDES)}) or the name of a tool."}
        },
        "required": [TOPIC],
    },
    ToolAnnotations(read_only_hint=True, open_world_hint=False),
)


class DocsArguments(Struct, frozen=True, forbid_unknown_fields=True):
    topic: str


def read_docs(catalogue: Catalogue, arguments: Arguments) -> str:
    """The text of a topic. Takes a few milliseconds for a tool."""
    topic = decode_body(join_members(arguments), _decoder).topic
    if topic in GUIDES:
        return _read_guide(topic)
    if tool := catalogue.tools.get(topic):
        return describe_tool(tool)
    raise Invalid.field(TOPIC, f"must be the name of a tool or one of {', '.join(GUIDES)}")


_decoder = build_decoder(DocsArguments)


@lru_cache
def _read_guide(name: str) -> str:
    folder = next(folder for folder in _FOLDERS if folder.is_dir())
    return (folder / f"{name}.md").read_text()


def describe_tool(tool: Tool) -> str:
    """What the short definition leaves out."""
    endpoint = tool.endpoint
    errors = {error.code: error.summary() for error in endpoint.raises}
    parts = [
        f"# {tool.name}\n\n{endpoint.method} {tool.template}",
        cleandoc(endpoint.handler.__doc__ or ""),
        scope_sentence(endpoint.scope, endpoint.routes.product),
        f"## Arguments\n\n{_encode(_describe_arguments(endpoint))}",
        f"## Result\n\n{_encode(build_result_schema(endpoint))}" if endpoint.status != 204 else "",
        "## Errors\n\n" + "\n".join(f"- {code}: {text}" for code, text in errors.items()) if errors else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _describe_arguments(endpoint: Endpoint) -> object:
    registry = SchemaRegistry()
    path = {name: registry.describe_request(endpoint.parameters[name]) for name in endpoint.path_ids}
    query = registry.query(endpoint.query) if endpoint.query else None
    body = registry.describe_request(endpoint.body) if endpoint.body else None
    parts = {"path": path, "query": query, "body": body, "schemas": registry.components}
    return {name: part for name, part in parts.items() if part}


def _encode(value: object) -> str:
    return f"```json\n{msgspec.json.encode(value).decode()}\n```"
