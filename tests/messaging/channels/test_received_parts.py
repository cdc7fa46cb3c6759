"""What customers send besides text: every kind of every channel, from its wire form to the parts of the message."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.messaging.channels.interface import (
    ChannelNotice,
    Identity,
    MarketingPreference,
    MessageAmendment,
    ReceivedItem,
    Source,
)
from sapa.messaging.channels.received_parts import (
    MAX_RAW_BYTES,
    MAX_RAW_DEPTH,
    encode_parts,
    keep_raw,
    parse_parts,
)
from sapa.messaging.channels.registry import CHANNELS
from tests.messaging.channels.accounts import ACCOUNTS
from tests.messaging.channels.test_callbacks import (
    AT,
    BUDI,
    IGSID,
    MILLISECONDS,
    PSID,
    SECONDS,
    TALK,
    event,
    message,
    page,
    read,
    tiktok,
    whatsapp,
)

Json = dict[str, Any]

CLOUD, MESSENGER, INSTAGRAM, TIKTOK = (
    Source.MSGAPP_CLOUD, Source.SOCIAL_NETWORK, Source.PHOTO_SOCIAL, Source.SHORT_VIDEO,
)  # fmt: skip


def cloud(**parts: Any) -> Json:
    return whatsapp(message(**parts))


def flow(response: str, name: str = "flow") -> Json:
    reply = {"name": name, "body": "Sent", "response_json": response}
    return cloud(type="interactive", interactive={"type": "nfm_reply", "nfm_reply": reply})


def messenger(**parts: Any) -> Json:
    return page(event(message={"mid": "m_1", **parts}))


def instagram(**parts: Any) -> Json:
    base = {"sender": {"id": "1357"}, "recipient": {"id": "17841400"}, "timestamp": MILLISECONDS}
    return page({**base, "message": {"mid": "m_1", **parts}}, id="17841400")


def attached(type: str, **payload: Any) -> Json:
    return {"attachments": [{"type": type, "payload": payload}]}


REFERRAL = {
    "sourceType": None, "sourceId": None, "sourceUrl": None, "headline": None, "body": None, "mediaType": None,
    "imageUrl": None, "videoUrl": None, "thumbnailUrl": None, "ctwaClid": None, "ref": None, "postId": None,
    "productId": None, "welcomeText": None,
}  # fmt: skip
CONTEXT = {
    "messageId": None, "messageId2": None, "isForwarded": False, "isFrequentlyForwarded": False, "product": None,
    "story": None,
}  # fmt: skip
AD = {
    "source_url": "https://fb.me/2abc", "source_id": "1202", "source_type": "ad", "headline": "Kopi baru",
    "body": "Ayo", "media_type": "image", "image_url": "https://cdn.example/ad.jpg", "ctwa_clid": "ARAk",
    "welcome_message": {"text": "Halo!"},
}  # fmt: skip
CART = {
    "catalog_id": "1948",
    "text": "Tolong cepat",
    "product_items": [
        {"product_retailer_id": "GAYO", "quantity": 2, "item_price": 75000.50, "currency": "IDR"},
        {"product_retailer_id": "TORAJA", "quantity": "3", "item_price": "12", "currency": "IDR"},
        {"product_retailer_id": "X", "quantity": 0.5},
    ],
}
CARD = {
    "name": {"formatted_name": "Ayu Lestari", "first_name": "Ayu"},
    "phones": [{"phone": "+62 811", "type": "CELL", "wa_id": "62811"}],
    "emails": [{"email": "ayu@example.com", "type": "WORK"}],
    "addresses": [{"street": "Jl. Merdeka 17", "city": "Bandung", "zip": "40111", "country_code": "id"}],
    "org": {"company": "Toko", "title": "Manajer"},
    "urls": [{"url": "https://toko.example"}],
    "birthday": "2000-01-31",
}
SHARE = {"id": None, "url": None, "title": None}
KINDS: dict[str, tuple[Source, Json, str, str | None, Json]] = {
    "a cart": (
        CLOUD, cloud(type="order", order=CART), "order", "Tolong cepat\n2 × GAYO\n3 × TORAJA\n? × X",
        {"order": {"catalogId": "1948", "text": "Tolong cepat", "orderId": None, "error": None, "items": [
            {"productId": "GAYO", "quantity": 2, "price": 75000.5, "currency": "IDR"},
            {"productId": "TORAJA", "quantity": 3, "price": 12, "currency": "IDR"},
            {"productId": "X", "quantity": None, "price": None, "currency": None}]}},
    ),
    "a flow": (
        CLOUD, flow('{"city":"Bandung","n":2,"sizes":["S"],"flow_token":"t-1"}'), "flow",
        'city: Bandung\nn: 2\nsizes: ["S"]',
        {"flow": {"name": "flow", "token": "t-1", "text": None,
                  "data": {"city": "Bandung", "n": 2, "sizes": ["S"], "flow_token": "t-1"}}},
    ),
    "a flow without a token": (
        CLOUD, flow('{"rating":"4"}'), "flow", "rating: 4",
        {"flow": {"name": "flow", "token": None, "data": {"rating": "4"}, "text": None}},
    ),
    "a flow that is not JSON": (
        CLOUD, flow("rating 4"), "flow", "Sent",
        {"flow": {"name": "flow", "token": None, "data": None, "text": "rating 4"}},
    ),
    "an address": (
        CLOUD, flow('{"values":{"city":"Bandung"}}', "address_message"), "flow", 'values: {"city":"Bandung"}',
        {"flow": {"name": "address_message", "token": None, "data": {"values": {"city": "Bandung"}}, "text": None}},
    ),
    "a location on the equator": (
        CLOUD, cloud(type="location", location={"latitude": 0.00002, "longitude": 109.3333}),
        "location", "0.00002,109.3333",
        {"location": {"latitude": 0.00002, "longitude": 109.3333, "name": None, "address": None, "url": None}},
    ),
    "a location": (
        CLOUD, cloud(type="location", location={"latitude": -6.2, "longitude": 106.8, "name": "Monas", "url": "https://x"}),
        "location", "Monas\n-6.2,106.8",
        {"location": {"latitude": -6.2, "longitude": 106.8, "name": "Monas", "address": None, "url": "https://x"}},
    ),
    "a place that is not on the map": (
        CLOUD, cloud(type="location", location={"latitude": 91, "longitude": 0}), "unsupported", None,
        {"unsupported": {"type": "location", "errors": [], "raw": {
            "from": "628123456789", "id": "wamid.in", "timestamp": SECONDS, "type": "location",
            "location": {"latitude": 91, "longitude": 0}}}},
    ),
    "contacts": (
        CLOUD, cloud(type="contacts", contacts=[CARD]), "contacts", "Ayu Lestari, +62 811",
        {"contactCards": [{
            "name": "Ayu Lestari", "phones": [{"phone": "+62 811", "type": "CELL", "waId": "62811"}],
            "emails": [{"email": "ayu@example.com", "type": "WORK"}],
            "addresses": [{"street": "Jl. Merdeka 17", "city": "Bandung", "state": None, "zip": "40111",
                           "country": None, "countryCode": "id", "type": None}],
            "urls": [{"url": "https://toko.example", "type": None}], "organization": "Toko, Manajer",
            "birthday": "2000-01-31"}]},
    ),
    "an ad": (
        CLOUD, cloud(type="text", text={"body": "Halo"}, referral=AD), "text", "Halo",
        {"referral": {**REFERRAL, "sourceType": "ad", "sourceId": "1202", "sourceUrl": "https://fb.me/2abc",
                      "headline": "Kopi baru", "body": "Ayo", "mediaType": "image",
                      "imageUrl": "https://cdn.example/ad.jpg", "ctwaClid": "ARAk", "welcomeText": "Halo!"}},
    ),
    "a forwarded text": (
        CLOUD, cloud(type="text", text={"body": "x"}, context={"frequently_forwarded": True}), "text", "x",
        {"context": {**CONTEXT, "isForwarded": True, "isFrequentlyForwarded": True}},
    ),
    "a question about a product": (
        CLOUD,
        cloud(type="text", text={"body": "?"},
              context={"referred_product": {"catalog_id": "1948", "product_retailer_id": "GAYO"}}),
        "text", "?", {"context": {**CONTEXT, "product": {"catalogId": "1948", "productId": "GAYO"}}},
    ),
    "what WhatsApp cannot pass on": (
        CLOUD,
        cloud(type="unsupported", unsupported={"type": "poll"},
              errors=[{"code": 131051, "title": "Unknown", "error_data": {"details": "Not supported."}}]),
        "unsupported", None,
        {"unsupported": {"type": "poll", "errors": [{"code": "131051", "message": "Not supported."}], "raw": {
            "from": "628123456789", "id": "wamid.in", "timestamp": SECONDS, "type": "unsupported",
            "unsupported": {"type": "poll"},
            "errors": [{"code": 131051, "title": "Unknown", "error_data": {"details": "Not supported."}}]}}},
    ),
    "an unknown kind of WhatsApp": (
        CLOUD, cloud(type="hologram", hologram={"depth": 1.50}), "unsupported", None,
        {"unsupported": {"type": "hologram", "errors": [], "raw": {
            "from": "628123456789", "id": "wamid.in", "timestamp": SECONDS, "type": "hologram",
            "hologram": {"depth": 1.5}}}},
    ),
    "an interactive answer without content": (
        CLOUD, cloud(type="interactive"), "unsupported", None,
        {"unsupported": {"type": "interactive", "errors": [], "raw": {
            "from": "628123456789", "id": "wamid.in", "timestamp": SECONDS, "type": "interactive"}}},
    ),
    "a location on Messenger": (
        MESSENGER,
        messenger(attachments=[{"type": "location", "title": "Monas", "url": "https://maps.example",
                                "payload": {"coordinates": {"lat": -6.2, "long": 106.8}}}]),
        "location", "Monas\n-6.2,106.8",
        {"location": {"latitude": -6.2, "longitude": 106.8, "name": "Monas", "address": None,
                      "url": "https://maps.example"}},
    ),
    "a link on Messenger": (
        MESSENGER, messenger(text="lihat", **attached("fallback", url="https://shop.example", title="Kopi")),
        "share", "lihat", {"shares": [{**SHARE, "type": "link", "url": "https://shop.example", "title": "Kopi"}]},
    ),
    "a product on Messenger": (
        MESSENGER,
        messenger(**attached("template", product={"elements": [
            {"id": "9", "retailer_id": "GAYO", "image_url": "https://cdn.example/g.jpg", "title": "Gayo"}]})),
        "share", "Gayo",
        {"shares": [{"type": "product", "id": "GAYO", "url": "https://cdn.example/g.jpg", "title": "Gayo"}]},
    ),
    "an ad on Messenger": (
        MESSENGER,
        messenger(text="Halo", referral={"source": "ADS", "type": "OPEN_THREAD", "ad_id": "1202", "ref": "promo",
                                         "ads_context_data": {"ad_title": "Kopi", "post_id": "77", "photo_url": "https://p"}}),
        "text", "Halo",
        {"referral": {**REFERRAL, "sourceType": "ad", "sourceId": "1202", "ref": "promo", "headline": "Kopi",
                      "postId": "77", "imageUrl": "https://p"}},
    ),
    "a mention in a story": (
        INSTAGRAM, instagram(**attached("story_mention", url="https://cdn.example/s")), "share", "https://cdn.example/s",
        {"shares": [{**SHARE, "type": "story_mention", "url": "https://cdn.example/s"}]},
    ),
    "a reply to a story": (
        INSTAGRAM, instagram(text="Bagus", reply_to={"story": {"id": "88", "url": "https://cdn.example/s"}}), "text",
        "Bagus", {"context": {**CONTEXT, "story": {"id": "88", "url": "https://cdn.example/s"}}},
    ),
    "a reel": (
        INSTAGRAM, instagram(**attached("ig_reel", reel_video_id="99", title="Kopi", url="https://cdn.example/r")),
        "share", "Kopi", {"shares": [{"type": "reel", "id": "99", "url": "https://cdn.example/r", "title": "Kopi"}]},
    ),
    "a post, in its two forms": (
        INSTAGRAM,
        instagram(attachments=[
            {"type": "share", "payload": {"url": "https://cdn.example/p"}},
            {"type": "ig_post", "payload": {"url": "https://cdn.example/p", "ig_post_media_id": "66",
                                            "title": "Toko"}}]),
        "share", "Toko", {"shares": [{"type": "post", "id": "66", "url": "https://cdn.example/p", "title": "Toko"}]},
    ),
    "an unknown kind of Instagram": (
        INSTAGRAM, instagram(**attached("ephemeral")), "unsupported", None,
        {"unsupported": {"type": "ephemeral", "errors": [], "raw": {
            "mid": "m_1", "attachments": [{"type": "ephemeral", "payload": {}}]}}},
    ),
    "a post on TikTok": (
        TIKTOK, tiktok("im_receive_msg", message_id="t1", type="share_post", share_post={"embed_url": "https://t.example"}),
        "share_post", "https://t.example", {"shares": [{**SHARE, "type": "post", "url": "https://t.example"}]},
    ),
    "an unknown kind of TikTok": (
        TIKTOK, tiktok("im_receive_msg", message_id="t1", type="dance", dance={"steps": 8}), "unsupported", None,
        {"unsupported": {"type": "dance", "errors": [], "raw": {
            "conversation_id": "conversation-1", "timestamp": MILLISECONDS, "message_id": "t1", "type": "dance",
            "dance": {"steps": 8}}}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_parts(kind: str) -> None:
    source, wire, type, body, parts = KINDS[kind]
    [item] = read(source, wire)
    assert isinstance(item, ReceivedItem)
    assert (item.type, item.body, json.loads(item.parts or b"{}")) == (type, body, parts)
    assert encode_parts(parse_parts(item.parts or b"{}")) == item.parts


def notices(source: Source, wire: Any) -> list[ChannelNotice]:
    found = read(source, wire)
    assert all(isinstance(item, ChannelNotice) for item in found), found
    return [item for item in found if isinstance(item, ChannelNotice)]


PREFERENCE = {
    "wa_id": "628123456789", "detail": "User requested to stop marketing messages", "category": "marketing_messages",
    "value": "stop", "timestamp": int(SECONDS),
}  # fmt: skip


def test_a_preference_names_the_person_and_the_choice() -> None:
    value = {"contacts": [{"profile": {"name": "Budi"}, "wa_id": "628123456789"}], "user_preferences": [PREFERENCE]}
    [notice] = notices(CLOUD, whatsapp(value, field="user_preferences"))
    assert (notice.kind, notice.name, notice.at, notice.sender_name) == ("preference", "marketing_messages", AT, "Budi")
    assert list(notice.sender) == BUDI
    assert notice.preference == MarketingPreference("stop", "marketing_messages", PREFERENCE["detail"])  # type: ignore[arg-type]
    assert json.loads(notice.data) == PREFERENCE


def test_a_preference_about_other_messages_is_only_recorded() -> None:
    value = {"user_preferences": [{**PREFERENCE, "category": "utility_messages"}]}
    [notice] = notices(CLOUD, whatsapp(value, field="user_preferences"))
    assert (notice.kind, notice.name, notice.preference) == ("preference", "utility_messages", None)


@pytest.mark.parametrize(
    ("status", "choice"), [("STOP_NOTIFICATIONS", "stop"), ("RESUME_NOTIFICATIONS", "resume"), (None, "signup")]
)
def test_messengers_marketing_messages_are_preferences(status: str | None, choice: str) -> None:
    optin = {"type": "notification_messages", "title": "Kabar", "notification_messages_status": status}
    [notice] = notices(MESSENGER, page(event(optin=optin)))
    assert notice.preference == MarketingPreference(choice, "notification_messages", "Kabar")
    assert list(notice.sender) == [PSID]


@pytest.mark.parametrize(
    ("source", "wire", "kind", "name", "sender"),
    [
        (CLOUD, whatsapp({"errors": [{"code": 131000, "title": "Oops"}]}), "error", "131000", []),
        (CLOUD, whatsapp({"news": [1]}, field="things_of_tomorrow"), "unknown", "things_of_tomorrow", []),
        (CLOUD, cloud(type="system", system={"type": "customer_identity_changed"}), "system",
         "customer_identity_changed", BUDI),
        (CLOUD, cloud(type="request_welcome"), "system", "request_welcome", BUDI),
        (MESSENGER, page(event(referral={"source": "SHORTLINK", "ref": "x"})), "referral", "SHORTLINK", [PSID]),
        (MESSENGER, page(event(policy_enforcement={"action": "warning"})), "unknown", "policy_enforcement", [PSID]),
        (MESSENGER, page(changes=[{"field": "feed", "value": {"x": 1}}]), "unknown", "feed", []),
        (TIKTOK, tiktok("im_referral_msg", referral={"source": "ad", "ad": {"ad_id": "5"}}), "referral", "ad", [TALK]),
        (TIKTOK, tiktok("im_something_new", message_id="t6"), "unknown", "im_something_new", [TALK]),
    ],
)  # fmt: skip
def test_what_is_no_message_is_kept(source: Source, wire: Json, kind: str, name: str, sender: list[Identity]) -> None:
    [notice] = notices(source, wire)
    assert (notice.kind, notice.name, list(notice.sender)) == (kind, name, sender)
    [again] = notices(source, wire)
    assert again.key == notice.key != ""


def test_notices_of_one_callback_differ() -> None:
    error = {"code": 131000, "title": "Oops"}
    first, second = notices(CLOUD, whatsapp({"errors": [error, error]}))
    assert first.key != second.key


def test_errors_beside_a_message_are_kept_with_it() -> None:
    value = {**message(type="interactive"), "errors": [{"code": 131000, "title": "Oops"}]}
    received, error = read(CLOUD, whatsapp(value))
    assert isinstance(received, ReceivedItem)
    assert isinstance(error, ChannelNotice)


def test_tiktoks_reactions() -> None:
    reactions = [
        {"original_msg_id": "t0", "emoji": "👍", "operation": "ADD"},
        {"original_msg_id": "t0", "emoji": "👍", "operation": "REMOVE"},
    ]
    assert read(TIKTOK, tiktok("im_receive_msg", message_id="t1", type="reaction", reaction=reactions)) == [
        MessageAmendment("reaction", "t0", AT, "👍", TALK),
        MessageAmendment("reaction", "t0", AT, None, TALK),
    ]


def test_a_reaction_of_the_page_itself_is_the_companys() -> None:
    ours = {"sender": {"id": "17841400"}, "recipient": {"id": "1357"}, "timestamp": MILLISECONDS}
    wire = page({**ours, "reaction": {"mid": "m_1", "action": "react", "emoji": "❤"}}, id="17841400")
    assert read(INSTAGRAM, wire) == [MessageAmendment("reaction", "m_1", AT, "❤", IGSID, is_echo=True)]


@pytest.mark.parametrize("number", ["1e999999999", "-1e999999999", "1e-999999999", "1e400", "9" * 4000])
def test_numbers_that_nobody_can_mean_are_left_out_at_once(number: str) -> None:
    item = f'{{"product_retailer_id": "X", "quantity": {number}, "item_price": {number}}}'
    place = f'{{"latitude": {number}, "longitude": {number}}}'
    wire = json.dumps(whatsapp({"messages": ["CART", "PLACE"]}))
    base = '{"from": "628123456789", "timestamp": "1"'
    wire = wire.replace('"CART"', f'{base}, "id": "a", "type": "order", "order": {{"product_items": [{item}]}}}}')
    wire = wire.replace('"PLACE"', f'{base}, "id": "b", "type": "location", "location": {place}}}')
    cart, _ = CHANNELS[CLOUD].read_callback(ACCOUNTS[CLOUD], wire.encode())
    assert isinstance(cart, ReceivedItem)
    (found,) = json.loads(cart.parts or b"")["order"]["items"]
    assert (found["quantity"], found["price"]) == (None, None)


def test_an_edit_that_cannot_be_read_keeps_the_text() -> None:
    edit = {"original_message_id": "wamid.1", "message": {"type": "hologram", "hologram": {}}}
    [notice] = notices(CLOUD, cloud(type="edit", edit=edit))
    assert (notice.kind, notice.name) == ("unknown", "edit")


def test_a_document_that_is_too_large_or_too_deep_is_left_out() -> None:
    deep: Any = 1
    for _ in range(MAX_RAW_DEPTH):
        deep = [deep]
    assert keep_raw(deep[0]) == deep[0]
    assert keep_raw([deep]) is None
    assert keep_raw("x" * MAX_RAW_BYTES) is None
    [item] = read(CLOUD, cloud(type="hologram", hologram={"blob": "x" * MAX_RAW_BYTES}))
    assert isinstance(item, ReceivedItem)
    assert json.loads(item.parts or b"")["unsupported"] == {"type": "hologram", "errors": [], "raw": None}


@given(st.text(), st.text())
def test_any_text_of_an_answer_can_be_stored(name: str, value: str) -> None:
    [item] = read(CLOUD, flow(json.dumps({name: value})))
    assert isinstance(item, ReceivedItem)
    assert b"\\u0000" not in (item.parts or b"")
    assert "\x00" not in (item.body or "")
    (item.parts or b"").decode()
