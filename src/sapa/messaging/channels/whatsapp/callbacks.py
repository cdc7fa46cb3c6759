"""WhatsApp's callbacks: arrays of entries, changes, messages and statuses."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

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
from sapa.messaging.channels.notices import assign_keys, build_notice
from sapa.messaging.channels.reading import Node, find_seconds, node, nodes, parse_object, seconds, text
from sapa.messaging.channels.received_parts import (
    MessageContext,
    Referral,
    ReferredProduct,
    encode_parts,
)
from sapa.messaging.channels.whatsapp.account_callbacks import ACCOUNT_FIELDS, is_of_number
from sapa.messaging.channels.whatsapp.contents import read_contents
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.messaging.channels.whatsapp.people import People, identify, only_digits
from sapa.messaging.channels.whatsapp.pricing import read_pricing
from sapa.messaging.channels.whatsapp.template_callbacks import TEMPLATE_FIELDS

_STATUSES: Mapping[str, Status] = {
    "sent": "sent",
    "delivered": "delivered",
    "read": "read",
    "played": "read",
    "failed": "failed",
}


def parse_callback(account: Mapping[str, str], body: bytes) -> Sequence[Item]:
    items = [
        item
        for entry in nodes(parse_object(body), "entry")
        for change in nodes(entry, "changes")
        for item in _read_change(account, entry, text(change, "field") or "", node(change, "value"))
    ]
    return assign_keys(items, body)


def _read_change(account: Mapping[str, str], entry: Node, field: str, value: Node) -> Iterator[Item]:
    """One app may have several numbers and business accounts with one callback address: only this account's changes are
    read. Those of templates and of the account name no number, only the business account."""
    is_own = text(entry, "id") in {None, account.get("waba_id")}
    if (read_template := TEMPLATE_FIELDS.get(field)) is not None:
        if is_own:
            yield from read_template(value)
        return
    if (read_account := ACCOUNT_FIELDS.get(field)) is not None:
        if is_own and is_of_number(account, value):
            yield read_account(value, seconds(entry, "time"))
        return
    number_id = text(value, "metadata", "phone_number_id")
    if not (is_own if number_id is None else number_id == account["phone_number_id"]):
        return
    if (read := MESSAGE_FIELDS.get(field)) is not None:
        yield from read(value)
        yield from _read_errors(value)
    elif value:
        yield build_notice("unknown", field, value)


def _read_messages(value: Node) -> Iterator[Item]:
    people = People(value)
    for message in nodes(value, "messages"):
        number, user_id = text(message, "from"), text(message, "from_user_id")
        sender = people.identify(number, user_id)
        yield from _read_message(message, sender, people.find_name(number, user_id))
    for status in nodes(value, "statuses"):
        yield from _read_status(status)


def _read_errors(value: Node) -> Iterator[Item]:
    """Errors of the account, which belong to no message."""
    for error in nodes(value, "errors"):
        yield build_notice("error", text(error, "code") or "error", error)


def _read_preferences(value: Node) -> Iterator[Item]:
    """What a person wants to get from this number."""
    people = People(value)
    for preference in nodes(value, "user_preferences"):
        number, user_id = text(preference, "wa_id"), text(preference, "user_id")
        category, choice = text(preference, "category"), (text(preference, "value") or "").lower()
        is_marketing = category == "marketing_messages"
        yield build_notice(
            "preference",
            category or "user_preferences",
            preference,
            find_seconds(preference, "timestamp"),
            sender=people.identify(number, user_id),
            sender_name=people.find_name(number, user_id),
            preference=MarketingPreference(choice, category, text(preference, "detail")) if is_marketing else None,
        )


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
        yield from _read_errors(part)
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
        yield from read(message, people, is_echo)
    elif id is not None and people:
        contents = read_contents(message)
        parts = replace(contents.parts, context=_read_context(message), referral=_read_referral(message))
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
            parts=encode_parts(parts),
        )
    else:
        yield build_notice("unknown", text(message, "type") or "message", message, find_seconds(message, "timestamp"))


def _read_context(message: Node) -> MessageContext | None:
    """The quoted message is added when this one is stored."""
    context = node(message, "context")
    product_id = text(context, "referred_product", "product_retailer_id")
    catalog_id = text(context, "referred_product", "catalog_id")
    found = MessageContext(
        is_forwarded=context.get("forwarded") is True or context.get("frequently_forwarded") is True,
        is_frequently_forwarded=context.get("frequently_forwarded") is True,
        product=ReferredProduct(catalog_id, product_id) if product_id else None,
    )
    return None if found == MessageContext() else found


def _read_referral(message: Node) -> Referral | None:
    """The ad or post stands beside the content, whatever its type."""
    found = node(message, "referral")
    names = {
        "source_type", "source_id", "source_url", "headline", "body", "media_type", "image_url", "video_url",
        "thumbnail_url", "ctwa_clid", "ref",
    }  # fmt: skip
    if not found:
        return None
    return Referral(**{name: text(found, name) for name in names}, welcome_text=text(found, "welcome_message", "text"))


def _read_reaction(message: Node, people: Sequence[Identity], is_echo: bool) -> Iterator[Item]:
    """Without an emoji the reaction was removed."""
    if id := text(message, "reaction", "message_id"):
        emoji = text(message, "reaction", "emoji")
        at = seconds(message, "timestamp")
        yield MessageAmendment("reaction", id, at, emoji, next(iter(people), None), is_echo)


def _read_edit(message: Node, people: Sequence[Identity], is_echo: bool) -> Iterator[Item]:
    id, contents = text(message, "edit", "original_message_id"), read_contents(node(message, "edit", "message"))
    if id is None or contents.type == "unsupported":
        yield build_notice("unknown", "edit", message, find_seconds(message, "timestamp"), sender=people)
        return
    sender = next(iter(people), None)
    yield MessageAmendment("edit", id, seconds(message, "timestamp"), contents.body, sender, is_echo)


def _read_revoke(message: Node, people: Sequence[Identity], is_echo: bool) -> Iterator[Item]:
    if id := text(message, "revoke", "original_message_id"):
        yield MessageAmendment("revoke", id, seconds(message, "timestamp"), None, next(iter(people), None), is_echo)


def _read_system(message: Node, people: Sequence[Identity], is_echo: bool) -> Iterator[Item]:
    """Nobody wrote it: a new number, a new device, a chat that was opened."""
    word = text(message, "system", "type") or text(message, "type") or "system"
    new = only_digits(text(message, "system", "wa_id") or text(message, "system", "new_wa_id"))
    if word in {"user_changed_number", "customer_changed_number"} and new and people:
        yield NumberChanged(people[0], Identity(PHONE.name, f"+{new}"), seconds(message, "timestamp"))
    else:
        yield build_notice("system", word, message, find_seconds(message, "timestamp"), sender=people)


def _read_status(status: Node) -> Iterator[Item]:
    word = _STATUSES.get(text(status, "status") or "")
    if word is None:
        yield build_notice("unknown", "status", status, find_seconds(status, "timestamp"))
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
        pricing=read_pricing(status, recipient),
    )


MESSAGE_FIELDS: Mapping[str, Callable[[Node], Iterator[Item]]] = {
    "messages": _read_messages,
    "smb_message_echoes": _read_echoes,
    "history": _read_history,
    "user_preferences": _read_preferences,
}
_CHANGES: Mapping[str, Callable[[Node, Sequence[Identity], bool], Iterator[Item]]] = {
    "reaction": _read_reaction,
    "edit": _read_edit,
    "revoke": _read_revoke,
    "system": _read_system,
    "request_welcome": _read_system,
}
