"""The one list of channels."""

from collections.abc import Mapping

from sapa.messaging.channels.instagram.adapter import INSTAGRAM
from sapa.messaging.channels.interface import Channel, Source
from sapa.messaging.channels.mail.adapter import MAIL
from sapa.messaging.channels.messenger.adapter import MESSENGER
from sapa.messaging.channels.tiktok.adapter import TIKTOK
from sapa.messaging.channels.whatsapp.adapter import CLOUD, COEXISTENCE
from sapa.messaging.channels.widget.adapter import Widget

_ALL: list[Channel] = [CLOUD, COEXISTENCE, INSTAGRAM, MESSENGER, TIKTOK, MAIL, Widget()]

CHANNELS: Mapping[Source, Channel] = {channel.source: channel for channel in _ALL}
