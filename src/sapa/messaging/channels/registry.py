"""The list of channels, and the names that callers use for them."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from sapa.messaging.channels.instagram.adapter import INSTAGRAM
from sapa.messaging.channels.interface import Channel, Source
from sapa.messaging.channels.mail.adapter import MAIL
from sapa.messaging.channels.messenger.adapter import MESSENGER
from sapa.messaging.channels.tiktok.adapter import TIKTOK
from sapa.messaging.channels.whatsapp.adapter import CLOUD, COEXISTENCE
from sapa.messaging.channels.widget.adapter import Widget

_ALL: list[Channel] = [CLOUD, COEXISTENCE, INSTAGRAM, MESSENGER, TIKTOK, MAIL, Widget()]

CHANNELS: Mapping[Source, Channel] = {channel.source: channel for channel in _ALL}

CHANNEL_NAMES: dict[str, list[Source]] = {
    name: [channel.source for channel in _ALL if name in channel.names] for channel in _ALL for name in channel.names
}
"""The channels that each name stands for in a filter; a send by that name uses the first."""

if TYPE_CHECKING:
    ChannelName = str
else:
    ChannelName = Literal[tuple(CHANNEL_NAMES)]

_SENDABLE = {source.lower(): source for source in CHANNELS} | {name: CHANNEL_NAMES[name][0] for name in CHANNEL_NAMES}
_SEPARATOR = re.compile(r"[\s_-]+")


def find_source(name: str) -> Source | None:
    """`msgapp cloud api`, `msgapp_cloud_api` and `MSGAPP_CLOUD` mean the same."""
    return _SENDABLE.get(_SEPARATOR.sub("_", name.strip().lower()))
