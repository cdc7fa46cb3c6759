"""Callbacks of channels: every array is read, every item converted."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from sapa.messaging.channels.interface import (
    ChannelNotice,
    Identity,
    InboundMedia,
    Interaction,
    Item,
    MessageAmendment,
    NumberChanged,
    ReceivedItem,
    Source,
    StatusReport,
)
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.channels.template_verdicts import TemplateVerdict
from tests.messaging.channels.accounts import ACCOUNTS, REFERENCE, SECRETS
from tests.messaging.channels.signing import sign

AT = datetime(2026, 3, 1, 2, 3, 4, tzinfo=UTC)
SECONDS, MILLISECONDS = str(int(AT.timestamp())), int(AT.timestamp() * 1000)
BUDI = [Identity("phone", "+628123456789"), Identity("wa_id", "628123456789")]
PSID, IGSID, TALK = Identity("psid", "2468"), Identity("igsid", "1357"), Identity("tt_conv", "conversation-1")


def read(source: Source, value: Any) -> list[Item]:
    body = json.dumps(value, ensure_ascii=False).encode()
    CHANNELS[source].check_callback(SECRETS, sign(source, body), body)
    return list(CHANNELS[source].read_callback(ACCOUNTS[source], body))


def without_parts(items: list[Item]) -> list[Item]:
    return [replace(item, parts=None) if isinstance(item, ReceivedItem) else item for item in items]


def whatsapp(*values: Mapping[str, Any], field: str = "messages") -> dict[str, Any]:
    """Each value is a change; two entries, so that every array has more than one element."""
    metadata = {"metadata": {"display_phone_number": "6281100001111", "phone_number_id": "1122"}}
    changes = [{"field": field, "value": {"messaging_product": "whatsapp", **metadata, **value}} for value in values]
    entries = [{"id": "3344", "changes": []}, {"id": "3344", "changes": changes}]
    return {"object": "whatsapp_business_account", "entry": entries}


def message(**parts: Any) -> dict[str, Any]:
    return {"messages": [{"from": "628123456789", "id": "wamid.in", "timestamp": SECONDS, **parts}]}


def page(*events: Mapping[str, Any], at: str = "messaging", id: str = "5566", **more: Any) -> dict[str, Any]:
    return {"object": "page", "entry": [{"id": id, "time": MILLISECONDS, at: list(events), **more}]}


def event(**parts: Any) -> dict[str, Any]:
    return {"sender": {"id": "2468"}, "recipient": {"id": "5566"}, "timestamp": MILLISECONDS, **parts}


def tiktok(event: str, **content: Any) -> dict[str, Any]:
    inner = {"conversation_id": "conversation-1", "timestamp": MILLISECONDS, **content}
    return {"event": event, "user_openid": "open-id-1", "content": json.dumps(inner)}


def test_every_array_of_whatsapp_is_read() -> None:
    def one(number: int) -> dict[str, Any]:
        return {
            "from": "628123456789",
            "id": f"wamid.{number}",
            "timestamp": SECONDS,
            "type": "text",
            "text": {"body": "x"},
        }

    def status(number: int) -> dict[str, Any]:
        return {"id": f"wamid.{number}", "status": "sent", "timestamp": SECONDS, "recipient_id": "628123456789"}

    value = whatsapp(
        {"messages": [one(1), one(2)], "statuses": [status(3), status(4)]},
        {"messages": [one(5)]},
        {"statuses": [status(6)]},
    )
    value["entry"].append(value["entry"][1])
    ids = [
        item.message_id for item in read(Source.MSGAPP_CLOUD, value) if isinstance(item, ReceivedItem | StatusReport)
    ]
    assert ids == [f"wamid.{number}" for number in (1, 2, 3, 4, 5, 6)] * 2


def test_a_text_tells_who_wrote_it_and_what_it_answers() -> None:
    contacts = [{"profile": {"name": "Budi"}, "wa_id": "628123456789", "user_id": "ID.1349"}]
    parts = message(type="text", text={"body": "Halo ☕"}, context={"from": "6281100001111", "id": "wamid.out"})
    [item] = read(Source.MSGAPP_CLOUD, whatsapp({"contacts": contacts, **parts}))
    assert item == ReceivedItem(
        "wamid.in", [*BUDI, Identity("bsuid", "ID.1349")], AT, "text", "Halo ☕", "Budi", quoted="wamid.out"
    )


def test_people_without_a_number_are_identified_by_their_id() -> None:
    contacts = [{"profile": {"name": "Ayu", "username": "ayu"}, "user_id": "ID.1349"}]
    parts = {"id": "wamid.in", "from_user_id": "ID.1349", "timestamp": SECONDS, "type": "text", "text": {"body": "Hi"}}
    [item] = read(Source.MSGAPP_CLOUD, whatsapp({"contacts": contacts, "messages": [parts]}))
    assert item == ReceivedItem("wamid.in", [Identity("bsuid", "ID.1349")], AT, "text", "Hi", "Ayu")


FILE = {"id": "media-1", "mime_type": "image/jpeg", "sha256": "x", "caption": "Nota", "filename": "nota.jpg"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        *[
            ({"type": kind, kind: FILE}, {"type": kind, "body": "Nota", "media": (
                InboundMedia(kind, "image/jpeg", "media-1", filename="nota.jpg"),)})
            for kind in ("image", "video", "audio", "document", "sticker")
        ],
        (
            {"type": "interactive", "interactive": {"button_reply": {"id": "yes", "title": "Ya"}}},
            {"type": "button", "body": "Ya", "interaction": Interaction("button", "yes", "Ya")},
        ),
        (
            {"type": "interactive", "interactive": {"list_reply": {"id": "gayo", "title": "Gayo"}}},
            {"type": "list", "body": "Gayo", "interaction": Interaction("list", "gayo", "Gayo")},
        ),
        (
            {"type": "button", "button": {"payload": "stop", "text": "Berhenti"}},
            {"type": "button", "body": "Berhenti", "interaction": Interaction("button", "stop", "Berhenti")},
        ),
        (
            {"type": "location", "location": {"latitude": -6.2, "longitude": 106.8, "name": "Monas"}},
            {"type": "location", "body": "Monas\n-6.2,106.8"},
        ),
        (
            {"type": "contacts", "contacts": [{"name": {"formatted_name": "Ayu"}, "phones": [{"phone": "+62 811"}]}]},
            {"type": "contacts", "body": "Ayu, +62 811"},
        ),
        (
            {"type": "order", "order": {"product_items": [{"product_retailer_id": "GAYO", "quantity": 2}]}},
            {"type": "order", "body": "2 × GAYO"},
        ),
        ({"type": "unsupported", "errors": [{"code": 131060}]}, {"type": "unsupported"}),
        ({"type": "hologram", "hologram": {"x": 1}}, {"type": "unsupported"}),
        ({}, {"type": "unsupported"}),
    ],
)  # fmt: skip
def test_each_kind_of_message(parts: dict[str, Any], expected: dict[str, Any]) -> None:
    [item] = without_parts(read(Source.MSGAPP_CLOUD, whatsapp(message(**parts))))
    assert item == ReceivedItem("wamid.in", BUDI, AT, **expected)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            {"type": "reaction", "reaction": {"message_id": "wamid.out", "emoji": "👍"}},
            MessageAmendment("reaction", "wamid.out", AT, "👍", BUDI[0]),
        ),
        (
            {"type": "reaction", "reaction": {"message_id": "wamid.out", "emoji": ""}},
            MessageAmendment("reaction", "wamid.out", AT, None, BUDI[0]),
        ),
        (
            {
                "type": "edit",
                "edit": {"original_message_id": "wamid.1", "message": {"type": "text", "text": {"body": "baru"}}},
            },
            MessageAmendment("edit", "wamid.1", AT, "baru", BUDI[0]),
        ),
        (
            {"type": "revoke", "revoke": {"original_message_id": "wamid.1"}},
            MessageAmendment("revoke", "wamid.1", AT, None, BUDI[0]),
        ),
        (
            {"type": "system", "system": {"type": "user_changed_number", "wa_id": "62899", "body": "changed"}},
            NumberChanged(BUDI[0], Identity("phone", "+62899"), AT),
        ),
    ],
)
def test_edits_reactions_and_deletions_are_read(parts: dict[str, Any], expected: Item) -> None:
    assert read(Source.MSGAPP_CLOUD, whatsapp(message(**parts))) == [expected]


@pytest.mark.parametrize(
    ("word", "status"),
    [("sent", "sent"), ("delivered", "delivered"), ("read", "read"), ("played", "read"), ("failed", "failed")],
)
def test_statuses_bring_our_reference_and_their_reason(word: str, status: Any) -> None:
    errors = [{"code": 131047, "title": "Re-engagement message", "error_data": {"details": "24 hours"}}]
    value = {"id": "wamid.out", "status": word, "timestamp": SECONDS, "recipient_id": "628123456789",
             "biz_opaque_callback_data": REFERENCE, **({"errors": errors} if word == "failed" else {})}  # fmt: skip
    item, unknown = read(Source.MSGAPP_CLOUD, whatsapp({"statuses": [value, {**value, "status": "warning"}]}))
    assert isinstance(unknown, ChannelNotice)
    assert (unknown.kind, unknown.name, json.loads(unknown.data)["status"]) == ("unknown", "status", "warning")
    why = ("131047", "24 hours", "window") if word == "failed" else (None, None, None)
    assert item == StatusReport(status, AT, "wamid.out", REFERENCE, None, BUDI[0], *why)


def test_an_echo_names_the_customer_as_contact() -> None:
    echo = {"from": "6281100001111", "to": "628123456789", "id": "wamid.e", "timestamp": SECONDS, "type": "text"}
    value = whatsapp(
        {"message_echoes": [{**echo, "text": {"body": "dari HP"}}]},
        {"message_echoes": [{**echo, "type": "revoke", "revoke": {"original_message_id": "wamid.1"}}]},
        field="smb_message_echoes",
    )
    assert read(Source.MSGAPP_COEX, value) == [
        ReceivedItem("wamid.e", BUDI, AT, "text", "dari HP", is_echo=True),
        MessageAmendment("revoke", "wamid.1", AT, None, BUDI[0], is_echo=True),
    ]


def test_history_is_marked_as_imported() -> None:
    def one(id: str, sender: str) -> dict[str, Any]:
        return {"from": sender, "id": id, "timestamp": SECONDS, "type": "text", "text": {"body": id}}

    threads = [{"id": "628123456789", "messages": [one("a", "628123456789"), one("b", "6281100001111")]}]
    value = whatsapp(
        {"history": [{"metadata": {"phase": 0, "chunk_order": 1, "progress": 5}, "threads": threads}]},
        {"history": [{"errors": [{"code": 2593109, "message": "History sharing is turned off"}]}]},
        field="history",
    )
    *items, declined = read(Source.MSGAPP_COEX, value)
    assert items == [
        ReceivedItem("a", BUDI, AT, "text", "a", is_imported=True),
        ReceivedItem("b", BUDI, AT, "text", "b", is_echo=True, is_imported=True),
    ]
    assert isinstance(declined, ChannelNotice)
    assert (declined.kind, declined.name) == ("error", "2593109")


def test_a_verdict_on_a_template() -> None:
    verdict = {"event": "REJECTED", "message_template_id": 1, "message_template_name": "order_update",
               "message_template_language": "id", "reason": "INVALID_FORMAT"}  # fmt: skip
    value = whatsapp(
        verdict, {**verdict, "event": "APPROVED", "reason": "NONE"}, field="message_template_status_update"
    )
    assert read(Source.MSGAPP_CLOUD, value) == [
        TemplateVerdict("order_update", "id", "REJECTED", "INVALID_FORMAT"),
        TemplateVerdict("order_update", "id", "APPROVED"),
    ]


TEMPLATE = {"message_template_id": 1, "message_template_name": "order_update", "message_template_language": "id"}


@pytest.mark.parametrize(
    ("field", "value", "verdict"),
    [
        (
            "message_template_status_update",
            {"event": "REJECTED", "rejection_info": {"reason": "Bad format.", "recommendation": "Add an example."}},
            TemplateVerdict("order_update", "id", "REJECTED", "Bad format. Add an example."),
        ),
        (
            "message_template_status_update",
            {"event": "PAUSED", "reason": "NONE", "other_info": {"title": "FIRST_PAUSE", "description": "Three hours"}},
            TemplateVerdict("order_update", "id", "PAUSED", "FIRST_PAUSE: Three hours"),
        ),
        (
            "message_template_quality_update",
            {"previous_quality_score": "GREEN", "new_quality_score": "YELLOW"},
            TemplateVerdict("order_update", "id", quality="YELLOW"),
        ),
        ("message_template_quality_update", {"new_quality_score": "UNKNOWN"}, None),
        (
            "template_category_update",
            {"new_category": "MARKETING", "previous_category": "UTILITY"},
            TemplateVerdict("order_update", "id", category="MARKETING"),
        ),
        ("template_category_update", {"new_category": "UTILITY", "correct_category": "MARKETING"}, None),
        ("template_category_update", {"new_category": "NEWS"}, None),
        (
            "message_template_components_update",
            {"message_template_element": "Hai {{1}}, halo.", "message_template_footer": "Toko"},
            TemplateVerdict("order_update", "id", has_new_content=True),
        ),
    ],
)
def test_reports_on_a_template(field: str, value: dict[str, Any], verdict: TemplateVerdict | None) -> None:
    whole = whatsapp({**TEMPLATE, **value}, field=field)
    assert read(Source.MSGAPP_CLOUD, whole) == ([] if verdict is None else [verdict])
    for entry in whole["entry"]:
        entry["id"] = "9999"  # another business account of the same app
    assert read(Source.MSGAPP_CLOUD, whole) == []


def test_another_number_of_the_same_app_is_skipped() -> None:
    value = whatsapp(message(type="text", text={"body": "x"}))
    value["entry"][1]["changes"][0]["value"]["metadata"]["phone_number_id"] = "9999"
    assert read(Source.MSGAPP_CLOUD, value) == []


@pytest.mark.parametrize("at", ["messaging", "standby"])
def test_messengers_messages(at: str) -> None:
    value = page(
        event(message={"mid": "m_1", "text": "Halo", "reply_to": {"mid": "m_0"}}),
        event(message={"mid": "m_2", "text": "Ya", "quick_reply": {"payload": "yes"}}),
        event(message={"mid": "m_3", "attachments": [
            {"type": "image", "payload": {"url": "https://cdn.example/1"}},
            {"type": "file", "payload": {"url": "https://cdn.example/2"}}]}),
        event(message={"mid": "m_4", "attachments": [{"type": "location", "payload": {}}]}),
        event(postback={"mid": "m_5", "title": "Mulai", "payload": "start"}),
        at=at,
    )  # fmt: skip
    value["entry"] += page(event(message={"mid": "m_6", "text": "dua"}), at=at)["entry"]
    files = [InboundMedia("image", url="https://cdn.example/1"), InboundMedia("document", url="https://cdn.example/2")]
    assert without_parts(read(Source.SOCIAL_NETWORK, value)) == [
        ReceivedItem("m_1", [PSID], AT, "text", "Halo", media=[], quoted="m_0"),
        ReceivedItem("m_2", [PSID], AT, "button", "Ya", media=[], interaction=Interaction("button", "yes", "Ya")),
        ReceivedItem("m_3", [PSID], AT, "image", media=files),
        ReceivedItem("m_4", [PSID], AT, "unsupported", media=[]),
        ReceivedItem("m_5", [PSID], AT, "button", "Mulai", interaction=Interaction("button", "start", "Mulai")),
        ReceivedItem("m_6", [PSID], AT, "text", "dua", media=[]),
    ]


def test_messengers_watermarks_are_in_milliseconds() -> None:
    value = page(
        event(delivery={"mids": ["m_1", "m_2"], "watermark": MILLISECONDS}),
        event(delivery={"watermark": MILLISECONDS}),
        event(read={"watermark": MILLISECONDS}),
    )
    assert read(Source.SOCIAL_NETWORK, value) == [
        StatusReport("delivered", AT, "m_1", recipient=PSID),
        StatusReport("delivered", AT, "m_2", recipient=PSID),
        StatusReport("delivered", AT, watermark=AT, recipient=PSID),
        StatusReport("delivered", AT, watermark=AT, recipient=PSID),
        StatusReport("read", AT, watermark=AT, recipient=PSID),
    ]


def test_messengers_echoes_bring_our_reference_back() -> None:
    ours = {"sender": {"id": "5566"}, "recipient": {"id": "2468"}, "timestamp": MILLISECONDS}
    value = page(
        {**ours, "message": {"mid": "m_1", "text": "x", "is_echo": True, "metadata": REFERENCE}},
        {**ours, "message": {"mid": "m_2", "text": "x", "is_echo": True, "app_id": 1, "metadata": "theirs"}},
        {**ours, "message": {"mid": "m_3", "text": "x", "is_echo": True, "metadata": f"caption of {REFERENCE}"}},
    )
    assert read(Source.SOCIAL_NETWORK, value) == [
        ReceivedItem("m_1", [PSID], AT, "text", "x", media=[], is_echo=True, reference=REFERENCE),
        ReceivedItem("m_2", [PSID], AT, "text", "x", media=[], is_echo=True),
    ]


def test_instagrams_own_ways() -> None:
    base = {"sender": {"id": "1357"}, "recipient": {"id": "17841400"}, "timestamp": MILLISECONDS}
    trial = {"field": "messages", "value": {**base, "message": {"mid": "m_9", "text": "trial"}}}
    value = page(
        {**base, "read": {"mid": "m_1"}},
        {**base, "message": {"mid": "m_2", "is_deleted": True}},
        {**base, "reaction": {"mid": "m_1", "action": "react", "reaction": "love", "emoji": "❤"}},
        {**base, "reaction": {"mid": "m_1", "action": "unreact"}},
        {**base, "message_edit": {"mid": "m_2", "text": "baru"}},
        id="17841400",
        changes=[trial],
    )
    assert read(Source.PHOTO_SOCIAL, value) == [
        StatusReport("read", AT, "m_1", recipient=IGSID),
        MessageAmendment("revoke", "m_2", AT, None, IGSID),
        MessageAmendment("reaction", "m_1", AT, "❤", IGSID),
        MessageAmendment("reaction", "m_1", AT, None, IGSID),
        MessageAmendment("edit", "m_2", AT, "baru", IGSID),
        ReceivedItem("m_9", [IGSID], AT, "text", "trial", media=[]),
    ]


def test_another_page_of_the_same_app_is_skipped() -> None:
    assert read(Source.SOCIAL_NETWORK, page(event(message={"mid": "m_1", "text": "x"}), id="7777")) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            tiktok("im_receive_msg", message_id="t1", type="text", text={"body": "Halo"},
                   referenced_message_info={"referenced_message_id": "t0"}, **{"from": "budi"}),
            ReceivedItem("t1", [TALK], AT, "text", "Halo", "budi", media=[], quoted="t0"),
        ),
        (
            tiktok("im_receive_msg", message_id="t2", type="image", image={"media_id": "m1"}),
            ReceivedItem("t2", [TALK], AT, "image", media=[InboundMedia("image", media_id="conversation-1 t2 m1")]),
        ),
        (
            tiktok("im_receive_msg", message_id="t3", type="share_post", share_post={"embed_url": "https://t.example"}),
            ReceivedItem("t3", [TALK], AT, "share_post", "https://t.example", media=[]),
        ),
        (
            tiktok("im_receive_msg", message_id="t4", type="dance"),
            ReceivedItem("t4", [TALK], AT, "unsupported", media=[]),
        ),
        (
            tiktok("im_send_msg", message_id="t5", type="text", text={"body": "x"}, **{"from": "shop"}),
            ReceivedItem("t5", [TALK], AT, "text", "x", media=[], is_echo=True),
        ),
        (
            tiktok("im_mark_read_msg", read={"last_read_timestamp": MILLISECONDS}),
            StatusReport("read", AT, watermark=AT, recipient=TALK),
        ),
    ],
)  # fmt: skip
def test_tiktoks_events(value: Any, expected: Item) -> None:
    assert without_parts(read(Source.SHORT_VIDEO, value)) == [expected]


@pytest.mark.parametrize(
    "source", [Source.MSGAPP_CLOUD, Source.SOCIAL_NETWORK, Source.PHOTO_SOCIAL, Source.SHORT_VIDEO]
)
@pytest.mark.parametrize("body", [b"", b"{", b"3", b"\xff", b'"text"', b"[" * 100_000])
def test_what_is_not_a_callback_at_all_is_an_error(source: Source, body: bytes) -> None:
    """So that it is set aside with its reason, not taken for an empty callback."""
    with pytest.raises(ValueError, match="not a JSON object"):
        CHANNELS[source].read_callback(ACCOUNTS[source], body)
