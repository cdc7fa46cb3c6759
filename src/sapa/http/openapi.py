"""placeholder"""

from collections.abc import Sequence
from typing import Any

import msgspec

from sapa.http.endpoints import Base, Routes


class Document:
    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def encode(self) -> bytes:
        return msgspec.json.encode(self.content)


def build_document(base: Base, server: str, domains: Sequence[Routes]) -> Document:
    return Document({})
