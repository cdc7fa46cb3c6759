"""The tools: one for each declared endpoint, with its hints, and the list that a key gets."""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from inspect import cleandoc
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct

from sapa.http.endpoints import Endpoint, Routes, camel
from sapa.http.keys import Key
from sapa.http.responses import Page, StoredJson
from sapa.http.schemas import Schema, id_kind_of, is_struct
from sapa.mcp.errors import ToolExcluded
from sapa.mcp.input_schemas import build_input_schema, is_read
from sapa.values.ids import IdKind

MAX_LISTS = 256


class ToolAnnotations(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Hints by which clients decide what to ask their user. A tool that only reads has none about changes."""

    read_only_hint: bool
    open_world_hint: bool
    """Whether a channel or a carrier is called."""
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None


class ToolDefinition(Struct, frozen=True, rename="camel"):
    name: str
    description: str
    input_schema: Schema
    annotations: ToolAnnotations


class Tool:
    """An endpoint as a tool."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.name = endpoint.operation
        self.toolset = endpoint.routes.resource
        self.template = f"{endpoint.routes.base}{endpoint.path}"
        self.path_names = [camel(name) for name in endpoint.path_ids]
        self.query_names = _list_names(endpoint.query)
        self.body_names = _list_names(endpoint.body)
        self.is_read = is_read(endpoint)

    @cached_property
    def definition(self) -> ToolDefinition:
        schema = build_input_schema(self.endpoint)
        return ToolDefinition(self.name, self.description, schema, build_annotations(self.endpoint))

    @property
    def description(self) -> str:
        """The docstring's summary and first paragraph."""
        summary, *paragraphs = cleandoc(self.endpoint.handler.__doc__ or "").split("\n\n")
        return " ".join(" ".join([summary, *paragraphs[:1]]).split())


class ToolSelection(Struct, frozen=True):
    """What the URL of a connection restricts the tools to."""

    toolsets: frozenset[str] = frozenset()
    """All of them if it is empty."""
    is_read_only: bool = False

    def check(self, tool: Tool) -> None:
        """Raises for a tool outside the selection."""
        if self.is_read_only and not tool.is_read:
            raise ToolExcluded(f"{tool.name} changes data, and this connection only reads (readonly=true in its URL).")
        if self.toolsets and tool.toolset not in self.toolsets:
            raise ToolExcluded(f"{tool.name} needs the toolset {tool.toolset}: add it to `toolsets` in the URL.")

    def includes(self, tool: Tool) -> bool:
        return (tool.is_read or not self.is_read_only) and (not self.toolsets or tool.toolset in self.toolsets)


class Catalogue:
    """All tools, by name. Lists of them are encoded once for each set of rights and each selection."""

    def __init__(self, domains: Sequence[Routes], docs_tool: ToolDefinition) -> None:
        self._docs_tool = docs_tool
        endpoints = [endpoint for routes in domains for endpoint in routes.endpoints]
        self.tools = {endpoint.operation: Tool(endpoint) for endpoint in endpoints if endpoint.tool.hidden is None}
        self.toolsets = list(dict.fromkeys(tool.toolset for tool in self.tools.values()))
        self._lists: dict[tuple[Any, ...], Raw] = {}
        self._finders: dict[str, list[Tool]] = {}
        for tool in self.tools.values():
            if (kind := _find_listed_kind(tool.endpoint)) and not tool.path_names:
                self._finders.setdefault(kind.prefix, []).append(tool)

    def list_tools(self, key: Key, selection: ToolSelection) -> list[Tool]:
        """The tools that the key may use, in the order of the reference."""
        return [tool for tool in self.tools.values() if selection.includes(tool) and _is_offered(tool, key)]

    async def encode_list(self, key: Key, selection: ToolSelection) -> Raw:
        """The list as JSON. The first one takes a quarter of a second, in a thread: other requests go on meanwhile."""
        rights = (key.scopes, key.products, key.company.is_test, selection)
        if rights not in self._lists:
            encoded = await asyncio.to_thread(self._encode_list, key, selection)
            if len(self._lists) >= MAX_LISTS:
                self._lists.clear()
            self._lists[rights] = encoded
        return self._lists[rights]

    def _encode_list(self, key: Key, selection: ToolSelection) -> Raw:
        definitions = [tool.definition for tool in self.list_tools(key, selection)]
        return Raw(msgspec.json.encode([*definitions, self._docs_tool]))

    def find_list_tool(self, endpoint: Endpoint, key: Key, selection: ToolSelection) -> Tool | None:
        """A tool that lists what the endpoint takes an id of: a caller with a wrong id finds the right one with it."""
        kinds = [kind for kind in endpoint.path_ids.values() if kind is not None]
        finders = self._finders.get(kinds[-1].prefix, []) if kinds else []
        return next((tool for tool in finders if selection.includes(tool) and _is_offered(tool, key)), None)


def build_annotations(endpoint: Endpoint) -> ToolAnnotations:
    if is_read(endpoint):
        return ToolAnnotations(True, endpoint.is_outbound)
    return ToolAnnotations(
        False,
        endpoint.is_outbound,
        destructive_hint=is_destructive(endpoint),
        idempotent_hint=endpoint.method in {"PUT", "DELETE"},
    )


def is_destructive(endpoint: Endpoint) -> bool:
    """Unless it is declared: whatever changes something that exists. A POST that creates only adds."""
    if endpoint.tool.is_destructive is not None:
        return endpoint.tool.is_destructive
    return endpoint.method != "POST" or (bool(endpoint.path_ids) and endpoint.status != 201)


def _is_offered(tool: Tool, key: Key) -> bool:
    if tool.endpoint.tool.is_for_tests and not key.company.is_test:
        return False
    return tool.endpoint.find_missing_right(key) is None


def _list_names(struct: Any) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(struct)) if struct else frozenset()


def _find_listed_kind(endpoint: Endpoint) -> IdKind | None:
    """The kind of id that a list's items have."""
    if get_origin(endpoint.result) not in {Page, list}:
        return None
    (item,) = get_args(endpoint.result)
    shapes = [mark.shape for mark in getattr(item, "__metadata__", ()) if isinstance(mark, StoredJson)]
    item = shapes[0] if shapes else item
    return id_kind_of(get_type_hints(item, include_extras=True).get("id")) if is_struct(item) else None
