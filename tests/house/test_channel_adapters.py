"""What differs between channels is declared on the channel: only its folder and its simulator name it."""

import ast

import pytest

from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS, FOLDERS
from sapa.sandbox.channels.simulators import SIMULATORS
from tests.house.source_tree import Module, build_module, list_imports, read_modules

OWN = (
    *(f"sapa.messaging.channels.{folder}." for folder in FOLDERS),
    "sapa.messaging.widget.",  # the pages and streams of the web chat, whose channel is our own
    *(f"sapa.sandbox.channels.{folder}" for folder in FOLDERS),
    "sapa.sandbox.channels.social",  # shared by Messenger and Instagram
    "sapa.sandbox.channels.graph",  # their API, and WhatsApp's
)
"""Modules of a channel or its simulator."""

EXCEPTIONS = {
    "sapa.messaging.channels.interface": "the stored words themselves",
    "sapa.messaging.sending.types": "the example in the API's document",
    "sapa.sandbox.types": "the example in the API's document",
    "sapa.outbound.mail_sink": "SMTP's verb, not the channel",
    "sapa.imports.sources.shopify": "the consents of a shop's customers, each stored for its channel",
    "sapa.demo.conversation_texts": "the demo's customers write on several channels",
    "sapa.cli.channel": "`sapa channel snippet` is a command of the web chat alone",
}


SOURCES = frozenset(Source)


def list_named_channels(modules: dict[str, Module]) -> list[str]:
    found = []
    for name, module in modules.items():
        if not name.startswith(OWN) and name not in EXCEPTIONS:
            found += [f"{name} names {ast.unparse(node)}" for node in module.nodes if _is_channel(node)]
            found += [f"{name} imports {other}" for other in sorted(list_imports(module, modules)) if _is_folder(other)]
    return found


def _is_channel(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "Source" and node.attr in Source.__members__
    return isinstance(node, ast.Constant) and node.value in SOURCES


def _is_folder(name: str) -> bool:
    return name.startswith(tuple(f"sapa.messaging.channels.{folder}." for folder in FOLDERS))


def test_no_other_module_names_a_channel() -> None:
    instead = "declare a field of `Capabilities` in messaging/channels/interface.py instead"
    assert list_named_channels(read_modules()) == [], instead


@pytest.mark.parametrize(
    "text",
    [
        "def f(source):\n    return source is Source.MAIL\n",
        'def f(source):\n    return source == "SHORT_VIDEO"\n',
        'APPROVING = {"MSGAPP_CLOUD"}\n',
        "from sapa.messaging.channels.tiktok.adapter import TIKTOK\n",
        "import sapa.messaging.channels.tiktok.adapter\n",
    ],
)
def test_a_planted_name_is_seen(text: str) -> None:
    adapter = "sapa.messaging.channels.tiktok.adapter"
    tree = {"sapa.support.x": build_module("sapa.support.x", text), adapter: build_module(adapter, "TIKTOK = 1")}
    assert len(list_named_channels(tree)) == 1


def test_every_exception_is_needed() -> None:
    modules = read_modules()
    for name in EXCEPTIONS:
        names = any(_is_channel(node) for node in modules[name].nodes)
        assert names or any(map(_is_folder, list_imports(modules[name], modules))), name


def test_every_channel_has_an_adapter_and_a_simulator() -> None:
    assert set(CHANNELS) == set(SIMULATORS) == set(Source)
    assert all(CHANNELS[source].source is source and CHANNELS[source].names for source in Source)
