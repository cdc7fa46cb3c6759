"""The two picture formats that TikTok takes, recognised by their first bytes."""

import base64

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG of one pixel."""

_BEGINNINGS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}


def find_type(content: bytes) -> str | None:
    return next((type for beginning, type in _BEGINNINGS.items() if content.startswith(beginning)), None)
