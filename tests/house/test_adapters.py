"""What differs between adapters is declared by them: nobody else asks for one by its name."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.providers import PROVIDERS
from tests.house.source_tree import SOURCE

Files = Mapping[str, str]


class Family(Struct, frozen=True):
    """Adapters of one kind, and where their names may stand. Paths are below the package."""

    names: Iterable[str]
    homes: tuple[str, ...]
    """What belongs to one of them; `{name}` stands for its name, and none belongs to another."""
    registries: tuple[str, ...]
    instead: str
    """What to do instead of asking for a name."""
    exceptions: Mapping[str, str] = {}
    """Other files, each with the one form in which it may have names."""


EXAMPLES = r"examples=\[[^\]]*\]"
"""The API's documents show a value for each field."""

CARRIER_FAMILIES = [
    Family(
        names=CARRIERS,
        homes=("shipping/carriers/{name}/", "sandbox/carriers/{name}.py"),
        registries=("shipping/carriers/registry.py",),
        instead="declare a trait of `Carrier` in shipping/carriers/interface.py instead",
        exceptions=dict.fromkeys(
            ("shipping/connections/api.py", "shipping/quotes/types.py", "shipping/scorecards/types.py"), EXAMPLES
        ),
    ),
    Family(
        names=PROVIDERS,
        homes=tuple(f"shipping/carriers/{carrier}/" for carrier in CARRIERS),
        registries=("shipping/providers.py",),
        instead="declare a trait of `ProviderTraits` in shipping/providers.py instead",
        exceptions=dict.fromkeys(
            (
                "shipping/connections/api.py",
                "shipping/connections/types.py",
                "shipping/quotes/types.py",
                "shipping/settlements/types.py",
                "shipping/types.py",
            ),
            EXAMPLES,
        ),
    ),
]


def list_misplaced(family: Family, files: Files) -> list[str]:
    """Names in quotes and imports of an adapter's own modules, outside the places that may have them.

    Prose is free to mention them: documents, docstrings and messages have them without quotes or in backticks.
    """
    found = []
    for path, text in files.items():
        if path in family.registries:
            continue
        allowed = family.exceptions.get(path)
        searched = re.sub(allowed, "", text) if allowed else text
        for name in family.names:
            if any(path.startswith(home.format(name=name)) for home in family.homes):
                continue
            if re.search(rf"""["']{name}["']|\b(?:carriers|channels)\.{name}\b""", searched):
                found.append(f"{path} names {name}")
    return found


def read_files(folder: Path = SOURCE) -> dict[str, str]:
    """Modules and templates; migrations are history, and the console's words translate every name."""
    paths = [path for suffix in ("py", "html") for path in sorted(folder.rglob(f"*.{suffix}"))]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def test_nobody_asks_for_a_carrier_or_a_provider_by_its_name() -> None:
    files = read_files()
    for family in CARRIER_FAMILIES:
        assert list_misplaced(family, files) == [], family.instead


def test_a_name_in_the_wrong_place_is_seen() -> None:
    carriers, providers = CARRIER_FAMILIES
    planted = {
        "shipping/actions.py": 'if shipment.provider == "ev_courier": ...',
        "shipping/bookings/queries.py": "SELECT 1 FROM shipments WHERE provider <> 'custom'",
        "console/templates/shipment.html": '{% if provider == "custom" %}',
        "shipping/quotes/types.py": 'Meta(examples=["aggregator_carrier"])',
        "shipping/api.py": '"""For ev_courier and `custom` only."""',
    }
    assert list_misplaced(providers, planted) == [
        "shipping/actions.py names ev_courier",
        "shipping/bookings/queries.py names custom",
        "console/templates/shipment.html names custom",
    ]
    planted = {
        "shipping/quotes/actions.py": "from sapa.shipping.carriers.gosend import calls",
        "shipping/carriers/dash/carrier.py": 'NAME = "dash"\nif other == "gosend": ...',
        "sandbox/carriers/gosend.py": 'NAME = "gosend"',
        "shipping/connections/api.py": 'examples=["kiriminaja"]\nif adapter == "biteship": ...',
    }
    assert list_misplaced(carriers, planted) == [
        "shipping/quotes/actions.py names gosend",
        "shipping/carriers/dash/carrier.py names gosend",
        "shipping/connections/api.py names biteship",
    ]


def test_every_carrier_serves_a_provider_that_is_declared() -> None:
    assert {carrier.provider for carrier in CARRIERS.values()} == {
        name for name, provider in PROVIDERS.items() if not provider.is_local
    }


def test_every_folder_of_a_carrier_is_listed() -> None:
    folders = {path.parent.name for path in (SOURCE / "shipping/carriers").glob("*/carrier.py")}
    assert folders == set(CARRIERS), "add the folder's name to shipping/carriers/registry.py"
    assert all(carrier.name == folder for folder, carrier in CARRIERS.items()), "a carrier's name is its folder's"
