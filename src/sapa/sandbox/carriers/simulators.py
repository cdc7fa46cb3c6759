"""The carriers' simulators and their routes. A carrier's simulator is the module of the same name."""

from collections.abc import Mapping
from importlib import import_module

from sapa.context import AppContext
from sapa.http.hooks import Hook
from sapa.sandbox.carriers.simulator import CarrierSimulator
from sapa.shipping.carriers.registry import CARRIERS

SIMULATORS: Mapping[str, CarrierSimulator] = {
    name: import_module(f"{__package__}.{name}").SIMULATOR for name in CARRIERS
}

HOOKS: list[Hook[AppContext]] = [Hook(f"/sandbox/{name}/", simulator.serve) for name, simulator in SIMULATORS.items()]
