"""The channels, found in their folders, and the names that callers use for them."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Literal

from sapa.messaging.channels.interface import Channel, Source
from sapa.values.enum_names import EnumName

FOLDERS = sorted(module.name for module in iter_modules([str(Path(__file__).parent)]) if module.ispkg)
"""A folder's `adapter` has its channels in `CHANNELS`."""

_FOUND: Mapping[Source, Channel] = {
    channel.source: channel
    for folder in FOLDERS
    for channel in import_module(f"{__package__}.{folder}.adapter").CHANNELS
}

if missing := [source for source in Source if source not in _FOUND]:
    raise ImportError(
        f"Source has {', '.join(missing)}, but no folder of {__package__} declares it. Add <folder>/adapter.py with a "
        f"channel of this source in its CHANNELS, and <folder>/__init__.py"
    )

CHANNELS: Mapping[Source, Channel] = {source: _FOUND[source] for source in Source}

CHANNEL_NAMES: dict[str, list[Source]] = {
    name: [source for source, channel in CHANNELS.items() if name in channel.names]
    for each in CHANNELS.values()
    for name in each.names
}
"""The channels that each name stands for in a filter; a send by that name uses the first."""

if TYPE_CHECKING:
    ChannelName = str
else:
    ChannelName = Annotated[Literal[tuple(CHANNEL_NAMES)], EnumName("ChannelName")]

_SENDABLE = {source.lower(): source for source in CHANNELS} | {name: CHANNEL_NAMES[name][0] for name in CHANNEL_NAMES}
_SEPARATOR = re.compile(r"[\s_-]+")


def find_source(name: str) -> Source | None:
    """`msgapp cloud api`, `msgapp_cloud_api` and `MSGAPP_CLOUD` mean the same."""
    return _SENDABLE.get(_SEPARATOR.sub("_", name.strip().lower()))
