"""Reading forms: origin checks, and limits on size and time."""

import asyncio
import hmac
from collections.abc import Callable
from functools import lru_cache

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from sapa.context import LargeBodies
from sapa.http.bodies import MAX_UPLOADED
from sapa.http.errors import Invalid, PayloadTooLarge, RequestTimeout
from sapa.http.exchange import BODY_SECONDS, UPLOAD_SECONDS
from sapa.http.incoming import LARGE_BYTES

MAX_FIELDS = 1_000
"""As many as a table of 150 columns or a product of 100 variants needs."""
MAX_FILES = 10
MAX_OPEN_FIELDS = 200
MAX_OPEN_BYTES = 65_536
"""For forms that are open to anybody."""
MAX_BYTES = LARGE_BYTES
MAX_BYTES_WITH_FILE = MAX_UPLOADED + LARGE_BYTES


@lru_cache(maxsize=1_000)
def build_token(secret: str) -> str:
    return hmac.digest(secret.encode(), b"form", "sha256").hex()


class FormBody:
    """The body of a form, within a limit. Only a few large ones are read at once, as in the API."""

    def __init__(self, receive: Receive, most: int, owner: str, large_bodies: LargeBodies) -> None:
        self._receive = receive
        self._most = most
        self._owner = owner
        self._large_bodies = large_bodies
        self._taken = 0
        self._release: Callable[[], None] | None = None

    async def receive(self) -> Message:
        message = await self._receive()
        self._taken += len(message.get("body", b""))
        if self._taken > self._most:
            raise PayloadTooLarge(f"The request's body is larger than {self._most // 1024} KiB.")
        if self._taken > LARGE_BYTES and self._release is None:
            self._release = await self._large_bodies.take(self._owner)
        return message

    def release(self) -> None:
        """The form is answered."""
        if self._release is not None:
            self._release()


async def read_form(request: Request, has_file: bool, max_fields: int) -> FormData:
    seconds = UPLOAD_SECONDS if has_file else BODY_SECONDS
    try:
        async with asyncio.timeout(seconds):
            form = await request.form(max_fields=max_fields, max_files=MAX_FILES)
    except TimeoutError:
        raise RequestTimeout(f"The form did not arrive within {seconds:.0f} seconds.") from None
    except (HTTPException, ClientDisconnect) as error:
        raise Invalid("The form cannot be read.") from error
    if any("\0" in text for pair in form.multi_items() for text in pair if isinstance(text, str)):
        raise Invalid("The form contains a character that cannot be stored.")
    return form


def comes_from_here(request: Request) -> bool:
    """Rejects forms of other sites before sign-in, by the browser's own headers."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")
