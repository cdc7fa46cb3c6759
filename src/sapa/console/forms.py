"""Reading forms: origin checks, and limits on size and time."""

import asyncio
import hmac
from hashlib import sha256

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from sapa.http.bodies import MOST_UPLOADED
from sapa.http.errors import Invalid, PayloadTooLarge, RequestTimeout
from sapa.http.exchange import BODY_SECONDS, UPLOAD_SECONDS

MOST_FIELDS = 200
MOST_FILES = 10
MOST_OPEN_BYTES = 65_536
"""For forms that are open to anybody; the others may hold a file."""
MOST_BYTES = MOST_UPLOADED + 1_048_576


def build_token(secret: str) -> str:
    return hmac.new(secret.encode(), b"form", sha256).hexdigest()


def limit_body(receive: Receive, most: int) -> Receive:
    taken = 0

    async def receive_some() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > most:
            raise PayloadTooLarge(f"The request's body is larger than {most // 1024} KiB.")
        return message

    return receive_some


async def read_form(request: Request, is_open: bool) -> FormData:
    seconds = BODY_SECONDS if is_open else UPLOAD_SECONDS
    try:
        async with asyncio.timeout(seconds):
            form = await request.form(max_fields=MOST_FIELDS, max_files=MOST_FILES)
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
