"""The channels' simulators and their routes. A channel's simulator is the module with the name of its folder."""

from collections.abc import Mapping
from importlib import import_module

from sapa.context import AppContext
from sapa.http.hooks import Hook
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import FOLDERS
from sapa.sandbox.channels import files, graph
from sapa.sandbox.channels.simulator import ChannelSimulator
from sapa.sandbox.external_access import ExternalAccess

SIMULATORS: Mapping[Source, ChannelSimulator] = {
    simulator.source: simulator
    for folder in FOLDERS
    for simulator in import_module(f"{__package__}.{folder}").SIMULATORS
}

HOOKS: list[Hook[AppContext]] = [
    *graph.HOOKS,
    Hook(files.PATH, files.answer),
    *(hook for simulator in SIMULATORS.values() for hook in simulator.hooks),
]

ACCESS: list[ExternalAccess] = [
    *graph.ACCESS,
    files.ACCESS,
    *(access for simulator in SIMULATORS.values() for access in simulator.access),
]
