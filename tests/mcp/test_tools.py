"""The list of tools: what a key sees, how each is described, and how long the list is."""

import tomllib
from typing import Any

import msgspec
import pytest
from jsonschema_rs import Draft202012Validator

from sapa.access.types import KeyProduct, Scope
from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.mcp.guides import DOCS_TOOL, GUIDES, describe_tool
from sapa.mcp.tools import Catalogue, Tool
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.house.source_tree import SOURCE
from tests.http.samples import sample_body
from tests.mcp.client import McpClient, connect_mcp

CATALOGUE = Catalogue(ROUTES, DOCS_TOOL)
TOOLS = list(CATALOGUE.tools.values())
READ = [scope for scope in Scope if scope.endswith(":READ")]

MAX_CHARACTERS = 5_400
"""Of one tool: about 1,300 tokens. tests/mcp/test_conformance.py counts real ones."""


def name_of(tool: Tool) -> str:
    return tool.name


async def list_names(client: McpClient) -> list[str]:
    return [tool["name"] for tool in await client.list_tools()]


def expected_names(scopes: list[str], products: list[str], is_test: bool) -> list[str]:
    """From the declarations, as the reference says which scope an operation needs."""
    endpoints = [endpoint for routes in ROUTES for endpoint in routes.endpoints]
    return [
        endpoint.operation
        for endpoint in endpoints
        if endpoint.tool.hidden is None
        and (is_test or not endpoint.tool.is_for_tests)
        and any(scope in scopes for scope in endpoint.scope.split(" or "))
        and (endpoint.routes.product is None or endpoint.routes.product in products)
    ] + ["read_docs"]


@pytest.mark.parametrize(
    ("scopes", "products"),
    [
        (list(Scope), list(KeyProduct)),
        (READ, list(KeyProduct)),
        ([Scope.ORDERS_READ, Scope.ORDERS_WRITE], []),
        ([], []),
    ],
)
async def test_a_key_sees_the_tools_of_its_scopes_and_products(
    installation: Installation, database: Database, company: Environments, scopes: list[str], products: list[str]
) -> None:
    for company_id in (company.live, company.test):
        key = await make_key(database, company_id, scopes, products)
        async with connect_mcp(installation, key.raw) as client:
            names = await list_names(client)
        assert names == expected_names(scopes, products, company_id == company.test)


async def test_orders_alone_show_no_shipping_without_the_product(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live, [Scope.ORDERS_READ], [])
    async with connect_mcp(installation, key.raw) as client:
        assert await list_names(client) == [
            "get_company", "list_orders", "get_order", "list_order_history", "list_draft_orders", "get_draft_order",
            "list_imports", "get_import", "list_import_errors", "list_import_mappings", "get_import_mapping",
            "read_docs",
        ]  # fmt: skip


async def test_the_url_narrows_the_list(installation: Installation, database: Database, company: Environments) -> None:
    key = await make_key(database, company.live)
    async with connect_mcp(installation, key.raw, "?toolsets=orders,customers") as client:
        chosen = await list_names(client)
    assert chosen == [*(tool.name for tool in TOOLS if tool.toolset in {"orders", "customers"}), "read_docs"]
    async with connect_mcp(installation, key.raw, "?readonly=true") as client:
        tools = await client.list_tools()
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
    assert len(tools) == 1 + sum(tool.is_read and not tool.endpoint.tool.is_for_tests for tool in TOOLS)
    async with connect_mcp(installation, key.raw, "?toolsets=tickets&readonly=true") as client:
        assert await list_names(client) == [
            "search_tickets",
            "list_tickets",
            "count_tickets",
            "get_ticket",
            "read_docs",
        ]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?toolsets=order", "unknown toolset 'order'. Toolsets: company, customers, products, orders,"),
        ("?toolset=orders", "toolset: is not a parameter"),
        ("?readonly=yes", "readonly: must be one of true, false"),
    ],
)
async def test_a_url_that_restricts_to_what_is_unknown_is_refused(
    installation: Installation, database: Database, company: Environments, query: str, words: str
) -> None:
    key = await make_key(database, company.live)
    async with connect_mcp(installation, key.raw, query) as client:
        response = await client.ask("tools/list")
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32602)
    assert words in response.json()["error"]["message"]


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_a_tool_is_named_and_described(tool: Tool) -> None:
    definition = tool.definition
    assert definition.description.endswith(".")
    assert "\n" not in definition.description
    assert "Needs the scope" not in definition.description
    assert len(msgspec.json.encode(definition)) <= MAX_CHARACTERS, (
        "shorten the docstring's first paragraph or the descriptions of its fields"
    )


def without_nulls(value: Any) -> Any:
    """Null is accepted and not offered."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_an_input_schema_is_valid_and_accepts_a_sample(tool: Tool) -> None:
    schema = tool.definition.input_schema
    Draft202012Validator(schema)
    assert schema["type"] == "object"
    arguments = without_nulls(sample_body(tool.endpoint) or {})
    for name in {*tool.path_names, *schema.get("required", [])} - arguments.keys():
        arguments[name] = schema["properties"][name].get("enum", ["x"])[0]
    for name, value in arguments.items():  # one or several: a list is offered
        if schema["properties"][name].get("type") == "array" and not isinstance(value, list):
            arguments[name] = [value]
    assert Draft202012Validator(schema).is_valid(arguments), [
        str(error) for error in Draft202012Validator(schema).iter_errors(arguments)
    ]
    assert set(arguments) <= set(schema["properties"])


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_the_docs_of_a_tool_have_what_its_definition_leaves_out(tool: Tool) -> None:
    text = describe_tool(tool)
    assert f"{tool.endpoint.method} {tool.template}" in text
    assert f"`{tool.endpoint.scope}`" in text
    assert all(error.code in text for error in tool.endpoint.raises)


@pytest.mark.parametrize("tool", TOOLS, ids=name_of)
def test_the_hints_say_what_a_tool_does(tool: Tool) -> None:
    hints, endpoint = tool.definition.annotations, tool.endpoint
    reads = {scope.rpartition(":")[2] for scope in endpoint.scope.split(" or ")} == {"READ"}
    assert hints.read_only_hint == reads
    assert hints.open_world_hint == endpoint.is_outbound
    if reads:
        assert (hints.destructive_hint, hints.idempotent_hint) == (None, None)
        return
    assert hints.idempotent_hint == (endpoint.method in {"PUT", "DELETE"})
    if endpoint.method in {"PUT", "PATCH", "DELETE"}:
        assert hints.destructive_hint
    elif endpoint.status == 201:
        assert hints.destructive_hint == (tool.name in FINAL)
    else:
        assert hints.destructive_hint == (tool.name not in ADDITIVE), "say in ADDITIVE how it is undone, or why not"


ADDITIVE = {
    "send_message": "adds a message",
    "send_message_template": "adds a message",
    "send_message_media": "adds a message",
    "send_message_interactive": "adds a message",
    "reply_to_ticket": "adds a message",
    "start_ticket": "adds a message",
    "take_ticket": "assign_ticket assigns it to somebody else",
    "change_tickets": "change_tickets sets it back",
    "apply_macro": "update_ticket sets it back",
    "simulate_inbound_message": "adds a message",
    "assign_ticket": "assign_ticket assigns it to somebody else",
    "hand_over_ticket": "assign_ticket assigns it back",
    "resolve_ticket": "reopen_ticket",
    "reopen_ticket": "resolve_ticket",
    "mark_message_read": "changes nothing of ours",
    "show_typing_indicator": "changes nothing of ours",
    "sync_templates": "stores what the channel has",
    "preview_import": "changes nothing",
    "create_settlement": "adds a settlement",
    "change_sandbox_channel_status": "sets it back, too",
    "test_channel": "asks the channel",
    "test_carrier": "asks the carrier",
    "pause_webhook_endpoint": "resume_webhook_endpoint",
    "resume_webhook_endpoint": "pause_webhook_endpoint",
    "send_test_webhook_event": "adds a delivery",
    "replay_webhook_events": "adds deliveries",
    "resend_webhook_delivery": "adds a delivery",
}
"""POSTs that create no resource and destroy nothing."""

FINAL = {"refund_order"}
"""POSTs that create what cannot be taken back."""


def test_the_guides_are_packaged_as_they_are_offered() -> None:
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())
    packaged = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert packaged == {f"docs/{name}.md": f"sapa/guides/{name}.md" for name in GUIDES}
    assert all((SOURCE.parents[1] / path).is_file() for path in packaged)


def test_the_list_of_additive_tools_is_current() -> None:
    assert set(ADDITIVE) <= set(CATALOGUE.tools)
