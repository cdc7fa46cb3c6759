"""What a form showed: a change that somebody else made meanwhile is not overwritten unseen."""

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType

import msgspec
from starlette.datastructures import FormData

from sapa.console.page_request import PageRequest
from sapa.http.errors import Conflict, FieldError, IdempotencyKeyReused
from sapa.values.json import encode

NAME = "shown"
"""A form's hidden field: a digest of each of its fields. Forms that share a page have names of their own."""
LONGEST_TEXT = 200


def build_shown(page: PageRequest, fields: Mapping[str, str], name: str = NAME) -> str:
    """A form that is refused still compares with what it showed first."""
    return page.form_value(name) or _encode(fields)


async def put_shown(
    page: PageRequest,
    path: str,
    body: object,
    fields: Mapping[str, str],
    name: str = NAME,
    places: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Changes a resource, of which `fields` are stored now. A refusal names the fields that are no longer as the form
    showed them, at `places` where the form calls them differently; sent again, the form overwrites them."""
    changed, once = _list_changed(page.form_value(name), fields), _name_once(page)
    try:
        if changed is not None and not await page.api.has_called(page.company_id, "PUT", path, body, once):
            others = [(one, value) for one, value in page.form.multi_items() if one != name]
            page.form = FormData([*others, (name, _encode(fields))])
            details = [
                FieldError(places.get(one, one), _say(fields[one]) if one in fields else "was deleted")
                for one in changed
                if one in fields or one in places
            ]
            raise Conflict("Somebody changed this meanwhile. Look at it and save again.", details=details)
        await page.call("PUT", path, body=body, once=once)
    except IdempotencyKeyReused:
        return  # the same form again, after its change was stored


def _name_once(page: PageRequest) -> str | None:
    """By all that the form sends: what is made of it depends on what is stored."""
    if not (form_key := page.form_value("once")):
        return None
    return f"{form_key}-{sha256(encode(page.form.multi_items())).hexdigest()[:16]}"


def _list_changed(sent: str, fields: Mapping[str, str]) -> list[str] | None:
    """None if all is as it was shown."""
    if not sent or sent == _encode(fields):
        return None
    try:
        shown = msgspec.json.decode(sent, type=dict[str, str])
    except msgspec.DecodeError:
        shown = {}
    stored = {name: _digest(text) for name, text in fields.items()}
    return [name for name in {**shown, **stored} if shown.get(name) != stored.get(name)]


def _encode(fields: Mapping[str, str]) -> str:
    return msgspec.json.encode({name: _digest(text) for name, text in fields.items()}).decode()


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def _say(text: str) -> str:
    return f"was changed to '{text[:LONGEST_TEXT]}'" if text else "was emptied"
