"""The list of carriers. A new one is a folder, its simulator and a line here."""

from collections.abc import Mapping

from sapa.shipping.carriers.biteship.carrier import Biteship
from sapa.shipping.carriers.dash.carrier import Dash
from sapa.shipping.carriers.gosend.carrier import GoSend
from sapa.shipping.carriers.interface import Carrier
from sapa.shipping.carriers.kiriminaja.carrier import KiriminAja

_ALL: tuple[Carrier, ...] = (KiriminAja(), GoSend(), Dash(), Biteship())

CARRIERS: Mapping[str, Carrier] = {carrier.name: carrier for carrier in _ALL}


def list_providers() -> list[str]:
    """Providers that need an account with a carrier."""
    return list(dict.fromkeys(carrier.provider for carrier in _ALL))


def list_adapters(provider: str) -> list[Carrier]:
    """The carriers that serve a provider; the first is the default."""
    return [carrier for carrier in _ALL if carrier.provider == provider]
