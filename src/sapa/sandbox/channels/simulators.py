"""The list of channel simulators."""

from collections.abc import Mapping

from sapa.context import AppContext
from sapa.http.hooks import Hook
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import files, graph, mail, social, tiktok, whatsapp, widget
from sapa.sandbox.channels.simulator import ChannelSimulator

HOOKS: list[Hook[AppContext]] = [*graph.HOOKS, *tiktok.HOOKS, *mail.HOOKS, widget.HOOK, Hook(files.PATH, files.answer)]

_ALL = [*whatsapp.SIMULATORS, *social.SIMULATORS, tiktok.SIMULATOR, mail.SIMULATOR, widget.SIMULATOR]

SIMULATORS: Mapping[Source, ChannelSimulator] = {simulator.source: simulator for simulator in _ALL}
