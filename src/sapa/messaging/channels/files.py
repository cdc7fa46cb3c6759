"""Files of messages, as channels get them, and which ones a channel accepts."""

from collections.abc import AsyncIterator, Callable

from msgspec import Struct


class MailAttachment(Struct, frozen=True):
    filename: str
    mime_type: str
    content: bytes


class FileDescription(Struct, frozen=True):
    """A file of a message that we hold."""

    type: str
    filename: str
    media_type: str
    size: int


class OutgoingFile:
    """A file that we hold, to be uploaded to a channel."""

    __slots__ = ("filename", "media_type", "read", "size")

    def __init__(self, filename: str, media_type: str, size: int, read: Callable[[], AsyncIterator[bytes]]) -> None:
        self.filename = filename
        self.media_type = media_type
        self.size = size
        self.read = read
        """Reads its content, piece by piece."""


class FileRule(Struct, frozen=True):
    """Which files a channel accepts as one type of media."""

    max_bytes: int
    media_types: frozenset[str] | None = None
    """None for all."""
