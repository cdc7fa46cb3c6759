"""Signs callbacks as the Graph API does."""

from typing import Any

import msgspec

from sapa.sandbox.channels.accounts import SandboxAccount, sign
from sapa.sandbox.channels.simulator import Post


def sign_post(account: SandboxAccount, value: dict[str, Any]) -> Post:
    body = msgspec.json.encode(value)
    signature = "sha256=" + sign(account.secrets["app_secret"], body)
    return Post({"content-type": "application/json", "x-hub-signature-256": signature}, body)
