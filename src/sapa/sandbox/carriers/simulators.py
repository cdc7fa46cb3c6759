"""The simulators of carriers, and where they listen."""

from collections.abc import Mapping

from msgspec import Struct

from sapa.context import Kit
from sapa.http.hooks import Hook
from sapa.sandbox.carriers import biteship, dash, gosend, kiriminaja
from sapa.sandbox.carriers.bookings import Build
from sapa.sandbox.carriers.scenarios import Kind


class Simulator(Struct, frozen=True):
    kind: Kind
    build_posting: Build


SIMULATORS: Mapping[str, Simulator] = {
    kiriminaja.NAME: Simulator("express", kiriminaja.build_posting),
    gosend.NAME: Simulator("instant", gosend.build_posting),
    dash.NAME: Simulator("instant", dash.build_posting),
    biteship.NAME: Simulator("express", biteship.build_posting),
}

HOOKS: list[Hook[Kit]] = [Hook(f"{module.PREFIX}/", module.answer) for module in (kiriminaja, gosend, dash, biteship)]
