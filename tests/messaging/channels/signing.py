"""Callbacks signed as the channels sign them."""

import time

from sapa.messaging.channels import meta
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.tiktok.callbacks import sign as sign_tiktok
from tests.messaging.channels.accounts import APP_SECRET, WITHOUT_API

META = [Source.MSGAPP_CLOUD, Source.MSGAPP_COEX, Source.SOCIAL_NETWORK, Source.PHOTO_SOCIAL]
SIGNED = [source for source in Source if source not in WITHOUT_API]


def sign(source: Source, body: bytes, secret: str = APP_SECRET, at: float | None = None) -> dict[str, str]:
    """The headers of a signed body."""
    if source is Source.SHORT_VIDEO:
        stamp = int(time.time() if at is None else at)
        return {"tiktok-signature": f"t={stamp},s={sign_tiktok(secret, stamp, body)}"}
    assert source in META, f"add to signing.py how {source} signs its callbacks"
    return {"x-hub-signature-256": meta.sign(secret, body)}
