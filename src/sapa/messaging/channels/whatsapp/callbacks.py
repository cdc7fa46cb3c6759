"""WhatsApp's callbacks: arrays of entries, changes, messages and statuses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from sapa.messaging.channels.identities import PHONE
from sapa.messaging.channels.interface import (
    Identity,
    Item,
    MarketingPreference,
    MessageAmendment,
    NumberChanged,
    ReceivedItem,
    Status,
    StatusReport,
)
from sapa.messaging.channels.meta import describe, parse_graph_error
from sapa.messaging.channels.reading import Node, node, nodes, parse_json, seconds, text
from sapa.messaging.channels.whatsapp.contents import read_contents
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.messaging.channels.whatsapp.people import People, identify, only_digits
from sapa.messaging.channels.whatsapp.template_callbacks import TEMPLATE_FIELDS

_STATUSES: Mapping[str, Status] = {
    "sent": "sent",
    "delivered": "delivered",
    "read": "read",
    "played": "read",
    "failed": "failed",
}


def parse_callback(account: Mapping[str, str], body: bytes) -> Sequence[Item]:
    return [
        item
        for entry in nodes(parse_json(body), "entry")
        for change in nodes(entry, "changes")
        for item in _read_change(account, text(entry, "id"), text(change, "field") or "", node(change, "value"))
    ]


def _read_change(account: Mapping[str, str], owner: str | None, field: str, value: Node) -> Iterator[Item]:
    """One app may have several numbers and business accounts with one callback address: only this account's changes are
    read. Those of templates name no number, only the business account."""
    if (read_template := TEMPLATE_FIELDS.get(field)) is not None:
        if owner in {None, account.get("waba_id")}:
            yield from read_template(value)
        return
    number_id = text(value, "metadata", "phone_number_id")
    read = _FIELDS.get(field)
    if read is not None and number_id in {None, account.get("phone_number_id")}:
        yield from read(value)


def _read_messages(value: Node) -> Iterator[Item]:
    people = People(value)
    for message in nodes(value, "messages"):
        number, user_id = text(message, "from"), text(message, "from_user_id")
        sender = people.identify(number, user_id)
        yield from _read_message(message, sender, people.find_name(number, user_id))
    for status in nodes(value, "statuses"):
        yield from _read_status(status)


def _read_echoes(value: Node) -> Iterator[Item]:
    """Messages that a person sent from the business's own phone."""
    people = People(value)
    for message in nodes(value, "message_echoes"):
        customer = people.identify(text(message, "to"), text(message, "to_user_id"))
        yield from _read_message(message, customer, None, is_echo=True)


def _read_history(value: Node) -> Iterator[Item]:
    """Messages from before the number was connected, by thread; one callback may hold thousands."""
    ours = only_digits(text(value, "metadata", "display_phone_number"))
    for part in nodes(value, "history"):
        for thread in nodes(part, "threads"):
            customer = identify(text(thread, "id"), text(thread, "user_id"))
            for message in nodes(thread, "messages"):
                is_echo = ours is not None and only_digits(text(message, "from")) == ours
                yield from _read_message(message, customer, None, is_echo=is_echo, is_imported=True)


def _read_message(
    message: Node, people: Sequence[Identity], name: str | None, is_echo: bool = False, is_imported: bool = False
) -> Iterator[Item]:
    id = text(message, "id")
    read = _CHANGES.get(text(message, "type") or "")
    if read is not None:
        yield from read(message, people)
    elif id is not None and people:
        contents = read_contents(message)
        yield ReceivedItem(
            message_id=id,
            sender=people,
            at=seconds(message, "timestamp"),
            type=contents.type,
            body=contents.body,
            sender_name=name,
            media=contents.media,
            interaction=contents.interaction,
            quoted=text(message, "context", "id"),
            is_echo=is_echo,
            is_imported=is_imported,
        )


def _read_reaction(message: Node, people: Sequence[Identity]) -> Iterator[Item]:
    """Without an emoji the reaction was removed."""
    if id := text(message, "reaction", "message_id"):
        emoji = text(message, "reaction", "emoji")
        yield MessageAmendment("reaction", id, seconds(message, "timestamp"), emoji, next(iter(people), None))


def _read_edit(message: Node, people: Sequence[Identity]) -> Iterator[Item]:
    if id := text(message, "edit", "original_message_id"):
        body = read_contents(node(message, "edit", "message")).body
        yield MessageAmendment("edit", id, seconds(message, "timestamp"), body, next(iter(people), None))


def _read_revoke(message: Node, people: Sequence[Identity]) -> Iterator[Item]:
    if id := text(message, "revoke", "original_message_id"):
        yield MessageAmendment("revoke", id, seconds(message, "timestamp"), None, next(iter(people), None))


def _read_system(message: Node, people: Sequence[Identity]) -> Iterator[Item]:
    """Of the system messages only a change of number matters."""
    new = only_digits(text(message, "system", "wa_id") or text(message, "system", "new_wa_id"))
    if text(message, "system", "type") in {"user_changed_number", "customer_changed_number"} and new and people:
        yield NumberChanged(people[0], Identity(PHONE.name, f"+{new}"), seconds(message, "timestamp"))


def _read_status(status: Node) -> Iterator[Item]:
    word = _STATUSES.get(text(status, "status") or "")
    if word is None:
        return
    error = next(iter(nodes(status, "errors")), None)
    graph_error = parse_graph_error({"error": error}) if error else None
    meaning = classify(graph_error) if graph_error else None
    recipient = identify(text(status, "recipient_id"), text(status, "recipient_user_id"))
    yield StatusReport(
        status=word,
        at=seconds(status, "timestamp"),
        message_id=text(status, "id"),
        reference=text(status, "biz_opaque_callback_data"),
        recipient=next(iter(recipient), None),
        code=str(graph_error.code) if graph_error else None,
        reason=describe(graph_error) if graph_error else None,
        category=meaning.category if meaning else None,
        is_retryable=meaning is not None and meaning.retry_after is not None,
    )


def _read_preferences(value: Node) -> Iterator[Item]:
    people = People(value)
    for preference in nodes(value, "user_preferences"):
        choice = _PREFERENCES.get(text(preference, "value") or "")
        person = people.identify(text(preference, "wa_id"), text(preference, "user_id"))
        if choice is not None and person and text(preference, "category") == "marketing_messages":
            yield MarketingPreference(person, choice, seconds(preference, "timestamp"), text(preference, "detail"))


_PREFERENCES: Mapping[str, Literal["stop", "resume"]] = {"stop": "stop", "resume": "resume"}
_FIELDS: Mapping[str, Callable[[Node], Iterator[Item]]] = {
    "messages": _read_messages,
    "user_preferences": _read_preferences,
    "smb_message_echoes": _read_echoes,
    "history": _read_history,
}
_CHANGES: Mapping[str, Callable[[Node, Sequence[Identity]], Iterator[Item]]] = {
    "reaction": _read_reaction,
    "edit": _read_edit,
    "revoke": _read_revoke,
    "system": _read_system,
}
