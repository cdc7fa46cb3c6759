"""The people that WhatsApp's callbacks mention."""

from collections.abc import Mapping, Sequence
from typing import Any

from sapa.messaging.channels.identities import PHONE, WA_ID, build_parser
from sapa.messaging.channels.interface import Identity, IdentityKind
from sapa.messaging.channels.reading import Node, nodes, text

BSUID = IdentityKind(
    "bsuid",
    build_parser(
        r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", "must be a WhatsApp user id, such as ID.13491208655302741918"
    ),
    has_distinct_format=True,
)

_PUNCTUATION = str.maketrans("", "", "+ -()")


class People:
    """The contacts of a change, by each of their ids."""

    def __init__(self, value: Node) -> None:
        self._by_name: Mapping[str, Node] = {
            name: contact
            for contact in nodes(value, "contacts")
            for name in (text(contact, "wa_id"), text(contact, "user_id"))
            if name
        }

    def identify(self, number: str | None, user_id: str | None) -> Sequence[Identity]:
        """The phone number first, since every channel can reply to it; some people have none."""
        contact = self._by_name.get(number or "") or self._by_name.get(user_id or "") or {}
        return identify(text(contact, "wa_id") or number, user_id or text(contact, "user_id"))

    def find_name(self, number: str | None, user_id: str | None) -> str | None:
        contact = self._by_name.get(number or "") or self._by_name.get(user_id or "")
        return text(contact, "profile", "name") or text(contact, "profile", "username")


def identify(number: str | None, user_id: str | None) -> Sequence[Identity]:
    found: list[Identity] = []
    if digits := only_digits(number):
        found += [Identity(PHONE.name, f"+{digits}"), Identity(WA_ID.name, digits)]
    elif number and not user_id:
        found.append(Identity(BSUID.name, number))
    return [*found, Identity(BSUID.name, user_id)] if user_id else found


def only_digits(number: Any) -> str | None:
    """The number without punctuation; None if it is not a number."""
    plain = str(number or "").translate(_PUNCTUATION)
    return plain if plain.isascii() and plain.isdigit() else None
