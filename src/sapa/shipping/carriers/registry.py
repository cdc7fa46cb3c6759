"""The list of carriers. A new one is a folder, its simulator and its name here."""

from collections.abc import Mapping
from importlib import import_module

from sapa.shipping.carriers.interface import Carrier

_NAMES = ("kiriminaja", "gosend", "dash", "biteship")
"""The folders. The first carrier of a provider is its default: add new ones at the end."""

CARRIERS: Mapping[str, Carrier] = {name: import_module(f"{__package__}.{name}.carrier").CARRIER for name in _NAMES}


def list_providers() -> list[str]:
    """Providers that need an account with a carrier."""
    return list(dict.fromkeys(carrier.provider for carrier in CARRIERS.values()))


def list_adapters(provider: str) -> list[Carrier]:
    """The carriers that serve a provider; the first is the default."""
    return [carrier for carrier in CARRIERS.values() if carrier.provider == provider]
