"""The carriers' simulators and their routes. A carrier's simulator is the module of the same name."""

from collections.abc import Mapping
from importlib import import_module

from sapa.context import AppContext
from sapa.http.hooks import Hook
from sapa.sandbox.carriers.simulator import CarrierSimulator
from sapa.sandbox.external_access import ExternalAccess
from sapa.shipping.carriers.registry import CARRIERS

SIMULATORS: Mapping[str, CarrierSimulator] = {
    name: import_module(f"{__package__}.{name}").SIMULATOR for name in CARRIERS
}

HOOKS: list[Hook[AppContext]] = [Hook(f"/sandbox/{name}/", simulator.serve) for name, simulator in SIMULATORS.items()]

ACCESS: list[ExternalAccess] = [
    ExternalAccess(
        prefix=f"/sandbox/{name}/",
        serve=simulator.serve,
        find_company_id=simulator.find_company_id,
        refuse=simulator.refuse,
        sign_in_paths=simulator.sign_in_paths,
    )
    for name, simulator in SIMULATORS.items()
]
