"""The one list of those who play channels."""

from collections.abc import Callable, Mapping

from sapa.context import Kit
from sapa.http.hooks import Hook
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import files, graph, mail, social, tiktok, whatsapp, widget
from sapa.sandbox.channels.accounts import Account
from sapa.sandbox.channels.inbound import Heard
from sapa.sandbox.channels.simulator import Post

HOOKS: list[Hook[Kit]] = [*graph.HOOKS, *tiktok.HOOKS, *mail.HOOKS, widget.HOOK, Hook(files.PATH, files.answer)]

SPEAKERS: Mapping[Source, Callable[[Account, Heard], Post]] = {
    Source.MSGAPP_CLOUD: whatsapp.build_inbound,
    Source.MSGAPP_COEX: whatsapp.build_inbound,
    Source.PHOTO_SOCIAL: social.build_inbound,
    Source.SOCIAL_NETWORK: social.build_inbound,
    Source.SHORT_VIDEO: tiktok.build_inbound,
    Source.MAIL: mail.build_inbound,
    Source.WIDGET: widget.build_inbound,
}
"""How a channel tells that somebody wrote."""
