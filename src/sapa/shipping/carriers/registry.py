"""The one list of carriers."""

from collections.abc import Mapping

from sapa.shipping.carriers.biteship.carrier import Biteship
from sapa.shipping.carriers.dash.carrier import Dash
from sapa.shipping.carriers.gosend.carrier import GoSend
from sapa.shipping.carriers.interface import Carrier
from sapa.shipping.carriers.kiriminaja.carrier import KiriminAja

_ALL: tuple[Carrier, ...] = (KiriminAja(), GoSend(), Dash(), Biteship())

CARRIERS: Mapping[str, Carrier] = {carrier.name: carrier for carrier in _ALL}
"""By their names; of two that serve one provider, the first is the one unless told otherwise."""

SANDBOX = {"instant_carrier": "gosend", "aggregator_carrier": "kiriminaja", "ev_courier": "dash"}
"""Who plays each provider in a test environment unless told otherwise."""

WITHOUT_ADAPTER = ("custom", "parcel_carrier")
"""Providers whose shipments are kept here only, and that are always connected."""
