"""The names that callers and operators rely on. `make names` renews public_names.txt."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import typer.main
from prometheus_client import REGISTRY

import sapa
from sapa import cli, domains
from sapa.events import CATALOGUE
from sapa.http.endpoints import Base
from sapa.http.errors import ApiError
from sapa.http.openapi import build_document
from sapa.messaging.channels.registry import CHANNEL_NAMES, CHANNELS
from sapa.settings import read_settings
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.providers import PROVIDERS
from sdk.generator.surface import read_surface
from tests.house.source_tree import SOURCE

FILE = Path(__file__).with_suffix(".txt")


def list_public_names() -> list[str]:
    """Each as `kind: name`, sorted."""
    for module in pkgutil.walk_packages(sapa.__path__, "sapa."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    parts = [_of_documents(), _of_sdks(), _of_domains(), _of_adapters(), _of_operations(), _of_commands()]
    return sorted({name for part in parts for name in part})


def _of_documents() -> Iterator[str]:
    for base in Base:
        document: Any = msgspec.json.decode(build_document(base, "http://localhost", domains.ROUTES).encode())
        for path in document["paths"].values():
            yield from (f"operation: {operation['operationId']}" for operation in path.values())
        yield from (f"component: {base.name.lower()} {name}" for name in document["components"]["schemas"])


def _of_sdks() -> Iterator[str]:
    surface = read_surface(domains.ROUTES)
    yield from (f"method: {operation.resource}.{operation.name}" for operation in surface.operations)


def _of_domains() -> Iterator[str]:
    yield from (f"event: {kind}" for kind, event in CATALOGUE.items() if _is_ours(event))
    yield from (f"error: {error.status} {error.code}" for error in _subclasses(ApiError) if _is_ours(error))


def _of_adapters() -> Iterator[str]:
    yield from (f"source: {source}" for source in CHANNELS)
    yield from (f"channel: {name}" for name in CHANNEL_NAMES)
    for channel in CHANNELS.values():
        yield from (f"identity: {kind.name}" for kind in channel.capabilities.identities)
    yield from (f"provider: {name}" for name in PROVIDERS)
    yield from (f"carrier: {name}" for name in CARRIERS)


def _of_operations() -> Iterator[str]:
    yield from (f"job: {job.name}" for job in domains.build_jobs(read_settings({})))
    yield from (f"service: {service.name}" for service in domains.SERVICES)
    yield from (f"setting: {name}" for name in re.findall(r'"(SAPA_[A-Z_]+)', _read("settings.py")))
    yield from (f"metric: {metric.name}" for metric in REGISTRY.collect() if metric.name.startswith("sapa_"))
    yield from (f"metric: {name}" for name in re.findall(r'"(sapa_\w+)":', _read("work/ages.py")))


def _of_commands() -> Iterator[str]:
    return _walk(typer.main.get_command(cli.app), "sapa")


def list_commands() -> list[str]:
    """Without `sapa` and their options."""
    names = (name.removeprefix("command: sapa ") for name in _of_commands())
    return [name for name in names if " -" not in name and not name.startswith("-")]


def _walk(command: Any, path: str) -> Iterator[str]:
    for parameter in command.params:
        if parameter.param_type_name == "option":  # an argument has no name on the command line
            yield from (f"command: {path} {option}" for option in [*parameter.opts, *parameter.secondary_opts])
    if not hasattr(command, "commands"):
        yield f"command: {path}"
    else:
        for name in command.commands:
            yield from _walk(command.commands[name], f"{path} {name}")


def _subclasses(parent: type[ApiError]) -> Iterator[type[ApiError]]:
    for child in parent.__subclasses__():
        yield child
        yield from _subclasses(child)


def _read(path: str) -> str:
    return (SOURCE / path).read_text()


def _is_ours(kind: type) -> bool:
    """Tests declare some of their own."""
    return kind.__module__.startswith("sapa.")


if __name__ == "__main__":
    FILE.write_text("\n".join(list_public_names()) + "\n")
