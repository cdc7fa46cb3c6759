"""The commands by name."""

import gc
from collections import UserDict
from pkgutil import resolve_name
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

COMMANDS = {
    "serve": "sapa.cli.serve:serve",
    "api": "sapa.cli.run:api",
    "worker": "sapa.cli.run:worker",
    "migrate": "sapa.cli.migrate:migrate",
    "database": "sapa.cli.database:app",
    "doctor": "sapa.cli.doctor:doctor",
    "backup": "sapa.cli.backup:app",
    "restore": "sapa.cli.restore:restore",
    "demo": "sapa.cli.demo:demo",
    "import": "sapa.cli.import_:import_",
    "export": "sapa.cli.export:export",
    "listen": "sapa.cli.listen:listen",
    "mcp": "sapa.cli.mcp:mcp",
    "version": "sapa.cli:version",
    "company": "sapa.cli.company:app",
    "key": "sapa.cli.key:app",
    "clock": "sapa.cli.clock:app",
    "areas": "sapa.cli.areas:app",
    "carrier": "sapa.cli.carrier:app",
    "loyalty": "sapa.cli.loyalty:app",
    "shipment": "sapa.cli.shipment:app",
    "settlement": "sapa.cli.settlement:app",
    "webhook": "sapa.cli.webhook:app",
    "token": "sapa.cli.token:app",
    "secrets": "sapa.cli.secrets:app",
    "channel": "sapa.cli.channel:app",
    "rates": "sapa.cli.rates:app",
    "user": "sapa.cli.user:app",
    "agent": "sapa.cli.agent:app",
    "analytics": "sapa.cli.analytics:app",
}
"""Functions or groups; the module is imported when the command runs, or when `--help` lists it."""


class LazyCommands(UserDict[str, Any]):
    def __getitem__(self, name: str) -> Any:
        gc.disable()  # what modules make is no garbage: looking for some takes a tenth of the time that they need
        target, parent = resolve_name(self.data[name]), typer.Typer()
        gc.freeze()
        gc.enable()
        if isinstance(target, typer.Typer):
            parent.add_typer(target, name=name)
        else:
            parent.command(name)(target)
        return get_group(parent).commands[name]


class CommandTable(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands(COMMANDS)
