"""Every endpoint is a tool of MCP, or says why it is not."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from msgspec import Struct, structs

from sapa.access.types import Scope
from sapa.domains import ROUTES
from sapa.http.endpoints import Base, Call, Endpoint, Routes, ToolTraits
from sapa.http.errors import ErrorBody
from sapa.http.responses import FILE_TYPES, PdfFile
from sapa.http.schemas import is_struct
from tests.house.source_tree import SOURCE

GUIDE = SOURCE.parents[1] / "docs" / "mcp.md"

SECRET_NAMES = {"secret", "token", "password", "apiKey", "rawKey", "headers", "credentials"}
"""Names of fields that may hold a secret: a model must not read one."""
HARMLESS = {
    ("OutboxEntry", "headers"): "a simulated request is stored without its token",
    ("WebhookEndpoint", "headers"): "only their names",
    ("DeliveryRequest", "headers"): "only their names",
    ("AccountFieldEntry", "secret"): "whether the field is one",
    ("FlowAnswer", "token"): "the sender's own name for a message",
}
"""Fields of such names that hold none, by their struct."""


def list_endpoints(domains: Sequence[Routes]) -> list[Endpoint]:
    return [endpoint for routes in domains for endpoint in routes.endpoints]


def wrong_tools(domains: Sequence[Routes]) -> list[str]:
    """Endpoints that no tool call can carry, that show secrets, or that are hidden without a sentence that says why."""
    endpoints = list_endpoints(domains)
    shown = [endpoint for endpoint in endpoints if endpoint.tool.hidden is None]
    return [
        *(f"{one.operation} takes a file" for one in shown if one.uploads or one.takes_file),
        *(f"{one.operation} returns a file" for one in shown
          if not FILE_TYPES.keys().isdisjoint({one.result, *get_args(one.result)})),
        *(f"{one.operation} shows {name}" for one in shown for name in find_secrets(one.result)),
        *(f"{one.operation} does not say why it is hidden" for one in endpoints if one.tool.hidden is not None
          and not (one.tool.hidden.endswith(".") and " " in one.tool.hidden)),
    ]  # fmt: skip


def find_secrets(result: Any) -> Iterator[str]:
    """The result's own `key`, and at any depth the names of secrets."""
    if is_struct(result) and any(field.encode_name == "key" for field in structs.fields(result)):
        yield "key"
    fields = set(_walk(result, set())) - HARMLESS.keys()
    yield from sorted({name for _, name in fields} & SECRET_NAMES)


def _walk(hint: Any, seen: set[Any]) -> Iterator[tuple[str, str]]:
    """Each field's struct and name."""
    struct = get_origin(hint) or hint
    if get_origin(hint) is Annotated:
        for part in (get_args(hint)[0], *(getattr(mark, "shape", None) for mark in get_args(hint)[1:])):
            yield from _walk(part, seen)
    elif is_struct(struct) and hint not in seen:
        seen.add(hint)
        hints = get_type_hints(struct, include_extras=True)
        for field in structs.fields(struct):
            yield struct.__name__, field.encode_name
            yield from _walk(hints[field.name], seen)
    for part in get_args(hint):
        yield from _walk(part, seen)


def test_every_endpoint_is_a_tool_or_says_why_not() -> None:
    assert ROUTES
    assert wrong_tools(ROUTES) == []


def test_the_guide_lists_every_hidden_operation_with_its_reason() -> None:
    lines = GUIDE.read_text().splitlines()
    for endpoint in list_endpoints(ROUTES):
        if endpoint.tool.hidden is not None:
            assert f"| `{endpoint.operation}` | {endpoint.tool.hidden} |" in lines


class LetterSecret(Struct):
    token: str


class NewLetter(Struct):
    key: str
    secrets: list[LetterSecret]


def test_secrets_and_reasons_that_say_nothing_are_seen() -> None:
    routes = Routes("/letters", base=Base.CUSTOMER, tag="Letters")

    async def create_letter(call: Call) -> NewLetter:
        raise AssertionError

    async def list_letters(call: Call) -> ErrorBody:
        raise AssertionError

    async def print_letter(call: Call) -> PdfFile:
        raise AssertionError

    routes.post("", scope=Scope.CUSTOMERS_WRITE)(create_letter)
    routes.get("", scope=Scope.CUSTOMERS_READ, tool=ToolTraits(hidden="secret"))(list_letters)
    routes.get("/printed", scope=Scope.CUSTOMERS_READ)(print_letter)
    assert wrong_tools([routes]) == [
        "print_letter returns a file",
        "create_letter shows key",
        "create_letter shows token",
        "list_letters does not say why it is hidden",
    ]
