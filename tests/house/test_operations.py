"""Operation names: each reads well alone, because clients and agents see all of them in one flat list."""

import re
from collections.abc import Sequence

from sapa.access.types import Scope
from sapa.domains import ROUTES
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import ErrorBody

LONGEST_NAME = 40
"""Clients put prefixes before the names of tools."""

SUBJECTS = {"points", "shipping"}
"""Uncountable subjects: they have no path with an id."""

_is_name = re.compile(r"[a-z]+(_[a-z]+)+").fullmatch


def list_names(domains: Sequence[Routes]) -> list[str]:
    return [endpoint.handler.__name__ for routes in domains for endpoint in routes.endpoints]


def list_resources(domains: Sequence[Routes]) -> set[str]:
    """The resources, and what has an id in some path, in the singular and the plural: `order` and `orders`."""
    paths = [endpoint.path for routes in domains for endpoint in routes.endpoints]
    plurals = {segment for path in paths for segment in re.findall(r"([a-z-]+)/\{", path)}
    plurals |= {routes.resource for routes in domains}
    return plurals | {plural.removesuffix("s") for plural in plurals}


def wrong_names(domains: Sequence[Routes]) -> list[str]:
    """Names that two operations of either base share, that are not a verb and a noun, or whose noun says too little."""
    names = list_names(domains)
    nouns = list_resources(domains) | SUBJECTS
    return [
        *(f"{name} names two operations" for name in sorted(set(names)) if names.count(name) > 1),
        *(f"{name} is not verb_noun" for name in names if not _is_name(name)),
        *(f"{name} is too long" for name in names if len(name) > LONGEST_NAME),
        *(f"{name} does not say of what" for name in names if name.count("_") == 1 and name.split("_")[1] not in nouns),
    ]


def test_operation_names_are_unique_and_read_well() -> None:
    assert ROUTES
    assert wrong_names(ROUTES) == []


def test_bare_and_repeated_names_are_seen() -> None:
    customer, messaging = (Routes("/letters", base=base, tag="Letters") for base in Base)

    async def get_letter(call: Call, id: str) -> ErrorBody:
        raise AssertionError

    async def get_settings(call: Call) -> ErrorBody:
        raise AssertionError

    async def reconcile(call: Call) -> ErrorBody:
        raise AssertionError

    customer.get("/{id}", scope=Scope.CUSTOMERS_READ)(get_letter)
    assert wrong_names([customer]) == []
    messaging.get("/{id}", scope=Scope.CUSTOMERS_READ)(get_letter)
    customer.get("/settings", scope=Scope.CUSTOMERS_READ)(get_settings)
    customer.get("/reconciliation", scope=Scope.CUSTOMERS_READ)(reconcile)
    assert wrong_names([customer, messaging]) == [
        "get_letter names two operations",
        "reconcile is not verb_noun",
        "get_settings does not say of what",
    ]
