"""At its address the WhatsApp simulator refuses what Meta documents as wrong: code, subcode and shape."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pywa.errors import WhatsAppError

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.http.wire import eventually
from tests.sandbox.address.outside import HAPPY, Json, OutsideProgram, open_program


def text(body: Any) -> Json:
    return {"type": "text", "text": {"body": body}}


def interactive(**fields: Any) -> Json:
    return {"type": "interactive", "interactive": {"body": {"text": "Pilih"}, **fields}}


def buttons(*titles: str, ids: list[str] | None = None) -> Json:
    names = ids or [f"id{number}" for number in range(len(titles))]
    replies = [{"type": "reply", "reply": {"id": id, "title": title}} for id, title in zip(names, titles, strict=True)]
    return interactive(type="button", action={"buttons": replies})


def rows(count: int, **fields: Any) -> Json:
    listed = [{"id": f"r{number}", "title": f"Baris {number}", **fields} for number in range(count)]
    return interactive(type="list", action={"button": "Buka", "sections": [{"title": "S", "rows": listed}]})


def template(*components: Json, name: str = "greeting", language: str = "id") -> Json:
    shown = {"name": name, "language": {"code": language}, "components": list(components)}
    return {"type": "template", "template": shown}


def values(*texts: str, **fields: Any) -> Json:
    return {"type": "body", "parameters": [{"type": "text", "text": value, **fields} for value in texts]}


def button(sub_type: str, *parameters: Json) -> Json:
    return {"type": "button", "sub_type": sub_type, "index": "0", "parameters": list(parameters)}


TEMPLATES: list[Json] = [
    {
        "name": "greeting",
        "category": "UTILITY",
        "components": [
            {"type": "BODY", "text": "Halo {{1}}, apa kabar?", "example": {"body_text": [["Ayu"]]}},
            {
                "type": "BUTTONS",
                "buttons": [
                    {"type": "URL", "text": "Lacak", "url": "https://s.id/{{1}}", "example": ["https://s.id/x"]},
                ],
            },
        ],
    },
    {
        "name": "named",
        "category": "UTILITY",
        "parameter_format": "NAMED",
        "components": [
            {
                "type": "BODY",
                "text": "Pesanan {{order_id}} tiba.",
                "example": {"body_text_named_params": [{"param_name": "order_id", "example": "1"}]},
            }
        ],
    },
    {
        "name": "pictured",
        "category": "MARKETING",
        "components": [
            {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::x"]}},
            {"type": "BODY", "text": "Promo hari ini."},
        ],
    },
    {
        "name": "called",
        "category": "UTILITY",
        "components": [
            {"type": "BODY", "text": "Hubungi kami."},
            {
                "type": "BUTTONS",
                "buttons": [{"type": "PHONE_NUMBER", "text": "Telepon", "phone_number": "62812345678"}],
            },
        ],
    },
    {
        "name": "code",
        "category": "AUTHENTICATION",
        "components": [
            {"type": "BODY", "add_security_recommendation": True},
            {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE", "text": "Salin"}]},
        ],
    },
    {"name": "sim_paused_offer", "category": "MARKETING", "components": [{"type": "BODY", "text": "Promo."}]},
    {"name": "sim_disabled_offer", "category": "MARKETING", "components": [{"type": "BODY", "text": "Promo."}]},
]
URL_VALUE: Json = {"type": "text", "text": "abc"}
LINK = button("url", URL_VALUE)
IMAGE: Json = {"type": "header", "parameters": [{"type": "image", "image": {"link": "https://shop.example/a.png"}}]}

Refusal = tuple[int, int, int | None, str]
MESSAGES: dict[str, tuple[Json, Refusal]] = {
    "no messaging_product": (
        {"messaging_product": None, **text("Halo")},
        (400, 100, None, "(#100) The parameter messaging_product is required."),
    ),
    "no recipient": ({"to": None, **text("Halo")}, (400, 100, None, "(#100) The parameter to is required.")),
    "an unknown type": ({"type": "jpeg"}, (400, 100, None, 'Param type must be one of {AUDIO, CONTACTS,')),
    "a type that is not sent": ({"type": "order", "order": {}}, (400, 131051, None, "not currently supported")),
    "no content": ({"type": "text"}, (400, 131008, None, "text is required")),
    "content of another JSON type": (
        {"type": "text", "text": "Halo"}, (400, 100, None, "Param text must be a JSON object."),
    ),
    "a text that is not a string": (text({"a": 1}), (400, 100, None, "Param text['body'] must be a string.")),
    "an empty text": (text(""), (400, 100, None, "Param text['body'] is required.")),
    "a text that is too long": (
        text("x" * 4097), (400, 100, None, "(#100) Param text['body'] must be at most 4096 characters long."),
    ),
    "a number that is none": (
        {"to": "budi", **text("Halo")}, (400, 131009, None, "The phone number is malformed"),
    ),
    "to the own number": (
        {"to": "+12025550140", **text("Halo")}, (400, 131021, None, "Sender and recipient phone numbers"),
    ),
    "a long tracker": (
        {**text("Halo"), "biz_opaque_callback_data": "x" * 513}, (400, 100, None, "at most 512 characters long."),
    ),
    "no buttons": (buttons(), (400, 131009, None, "Invalid buttons count. Min allowed buttons: 1, Max")),
    "four buttons": (buttons("A", "B", "C", "D"), (400, 131009, None, "Max allowed buttons: 3")),
    "a long button": (
        buttons("x" * 21), (400, 131009, None, "Button title length invalid. Min length: 1, Max length: 20"),
    ),
    "buttons with one id": (buttons("A", "B", ids=["a", "a"]), (400, 131009, None, "Button id must be unique")),
    "eleven rows": (rows(11), (400, 131009, None, "Total row count exceed max allowed count: 10")),
    "a long description": (rows(1, description="x" * 73), (400, 131009, None, "Row description length invalid")),
    "an image above a list": (
        interactive(type="list", header={"type": "image", "image": {"link": "https://s.id/a.png"}}, action={}),
        (400, 131009, None, "Header type image is not allowed for the interactive type list"),
    ),
    "a link without an address": (
        interactive(type="cta_url", action={"name": "cta_url", "parameters": {"display_text": "Buka", "url": "s.id"}}),
        (400, 131009, None, "URL is not valid"),
    ),
    "a flow without an id": (
        interactive(
            type="flow",
            action={"name": "flow", "parameters": {"flow_message_version": "3", "flow_cta": "Isi"}},
        ),
        (400, 131009, None, "Exactly one of flow_id and flow_name"),
    ),
    "products without a header": (
        interactive(type="product_list", action={"catalog_id": "1", "sections": []}),
        (400, 131009, None, "Header is required"),
    ),
    "media without a file": (
        {"type": "image", "image": {}}, (400, 131008, None, "Either one of media ID or link must be present"),
    ),
    "a link to a file on a disk": (
        {"type": "image", "image": {"link": "file:///a.png"}}, (400, 100, None, "is not a valid URI."),
    ),
    "a caption of a sound": (
        {"type": "audio", "audio": {"link": "https://s.id/a.ogg", "caption": "x"}},
        (400, 100, None, 'Unexpected key "caption" on param "audio".'),
    ),
    "a blank reaction": (
        {"type": "reaction", "reaction": {"message_id": "wamid.x", "emoji": " "}}, (400, 131009, None, "emoji"),
    ),
    "a reaction to nothing": (
        {"type": "reaction", "reaction": {"emoji": "👍"}}, (400, 131008, None, "reaction.message_id is required"),
    ),
    "a place that is none": (
        {"type": "location", "location": {"latitude": 91, "longitude": 0}}, (400, 131009, None, "Location latitude"),
    ),
    "a contact with one name": (
        {"type": "contacts", "contacts": [{"name": {"formatted_name": "Ayu"}}]},
        (400, 131009, None, "formatted_name and at least one more part"),
    ),
    "a template that is unknown": (
        template(name="nothing"), (404, 132001, None, "template name (nothing) does not exist in id"),
    ),
    "a template in another language": (
        template(language="en_US"), (404, 132001, None, "template name (greeting) does not exist in en_US"),
    ),
    "too few parameters": (
        template(LINK), (400, 132000, None, "body: number of localizable_params (0) does not match"),
    ),
    "a parameter without a text": (
        template({"type": "body", "parameters": [{"type": "text"}]}, LINK),
        (400, 100, None, "Parameter 'text' is mandatory for component parameter type 'text'"),
    ),
    "a parameter without a type": (
        template({"type": "body", "parameters": [{"text": "a"}]}, LINK),
        (400, 100, None, "violated JSON schema constraint 'required' for the JSON field "
                         "'template.components.0.parameters.0.type'"),
    ),
    "a parameter with a line break": (
        template(values("a\nb"), LINK), (400, 132018, None, "cannot have new-line/tab characters"),
    ),
    "a button without its parameter": (
        template(values("Ayu")),
        (400, 131008, None, "buttons: Button at index 0 of type Url requires a parameter"),
    ),
    "a button of another type": (
        template(values("Ayu"), button("quick_reply", {"type": "payload", "payload": "x"})),
        (400, 132018, None, "buttons: Button at index 0 must be of type Url"),
    ),
    "a parameter for a phone button": (
        template(button("voice_call", URL_VALUE), name="called"),
        (400, 100, None, "Button at index 0 is of type Call and does not support parameters"),
    ),
    "a parameter without its name": (
        template(values("INV-1"), name="named"), (400, 100, None, "Parameter name is missing or empty"),
    ),
    "a parameter with another name": (
        template(values("INV-1", parameter_name="nomor"), name="named"),
        (400, 100, None, "Parameter name is missing for the parameter '{{order_id}}'"),
    ),
    "a header without its image": (
        template(name="pictured"), (400, 132012, None, "header: Format mismatch, expected IMAGE, received UNKNOWN"),
    ),
    "a header image without a file": (
        template({"type": "header", "parameters": [{"type": "image", "image": {}}]}, name="pictured"),
        (400, 132018, None, "Either one of media ID or link must be present"),
    ),
    "a filled text that is too long": (
        template(values("x" * 1020), LINK), (400, 132005, None, "more than 1024 characters"),
    ),
    "a paused template": (template(name="sim_paused_offer"), (400, 132015, None, "paused")),
    "a disabled template": (template(name="sim_disabled_offer"), (400, 132016, None, "disabled")),
    "a code to a user id": (
        {
            "to": None,
            "recipient": "ID.628123456701",
            **template(values("482913"), button("url", {"type": "text", "text": "482913"}), name="code"),
        },
        (400, 131062, None, "user ID recipients are not supported"),
    ),
}  # fmt: skip
RECIPIENTS: dict[str, Refusal] = {
    "+12015550110": (400, 131026, None, "Message undeliverable"),
    "+12015550114": (429, 130429, None, "(#130429) Rate limit hit"),
    "+12015550115": (400, 131056, None, "pair rate limit hit"),
    "+12015550116": (401, 190, 463, "Error validating access token: Session has expired"),
    "+12015550117": (500, 131000, None, "Something went wrong"),
    "+12015550132": (400, 131048, None, "Spam rate limit hit"),
    "+12015550134": (403, 131031, None, "Business Account locked"),
    "+12015550135": (403, 368, None, "Temporarily blocked for policies violations"),
    "+12015550136": (403, 130497, None, "restricted from messaging users in this country"),
    "+12015550138": (400, 133010, None, "Account not registered"),
    "+12015550139": (403, 10, None, "does not have permission for this action"),
    "+12015550140": (400, 131064, None, "classification limit"),
    "+12015550141": (500, 131057, None, "maintenance mode"),
}


@pytest.fixture(scope="module")
async def program(installation: Installation, database: Database) -> AsyncIterator[OutsideProgram]:
    async with open_program(installation, database) as opened:
        for one in TEMPLATES:
            path = f"{opened.business_account}/message_templates"
            created = await opened.call("POST", path, json={"language": "id", **one})
            assert created.status_code == 200, created.text
        yield opened


def check(answer: Any, expected: Refusal) -> None:
    """Meta's shape, which an outside library reads, too."""
    status, code, subcode, words = expected
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error.get("error_subcode")) == (status, code, subcode), answer.text
    details = error.get("error_data", {})
    assert words in error["message"] or words in details.get("details", ""), answer.text
    assert error["type"] in {"OAuthException", "GraphMethodException"}
    assert len(error["fbtrace_id"]) > 5
    assert not details or details["messaging_product"] == "whatsapp"
    parsed = WhatsAppError.from_dict(error=error)
    assert (parsed.code, parsed.subcode) == (code, subcode)


@pytest.mark.parametrize("mistake", MESSAGES)
async def test_a_message_with_a_mistake_is_refused(program: OutsideProgram, mistake: str) -> None:
    body, expected = MESSAGES[mistake]
    given = {name: value for name, value in {"to": HAPPY, **body}.items() if value is not None}
    whole = {**({} if "messaging_product" in body else {"messaging_product": "whatsapp"}), **given}
    check(await program.call("POST", f"{program.number}/messages", json=whole), expected)


@pytest.mark.parametrize("number", RECIPIENTS)
async def test_a_recipient_selects_a_refusal(program: OutsideProgram, number: str) -> None:
    check(await program.send({"to": number, **text("Halo")}), RECIPIENTS[number])


async def test_there_are_more_than_25_refusals() -> None:
    refusals = {(code, subcode, words) for _, (_, code, subcode, words) in MESSAGES.values()}
    refusals |= {(code, subcode, words) for _, code, subcode, words in RECIPIENTS.values()}
    assert len(refusals) >= 50
    assert len({code for code, _, _ in refusals}) >= 20


async def test_messages_without_a_mistake_are_accepted(program: OutsideProgram) -> None:
    for body in (
        text("x" * 4096), buttons("Ya", "Tidak", "Mungkin"), rows(10, description="x" * 72),
        {"type": "image", "image": {"link": "https://shop.example/a.png", "caption": "x" * 1024}},
        {"type": "sticker", "sticker": {"link": "https://shop.example/a.webp"}},
        {"type": "location", "location": {"latitude": -6.2, "longitude": 106.8, "name": "Toko"}},
        {"type": "contacts", "contacts": [{"name": {"formatted_name": "Ayu L", "first_name": "Ayu"}}]},
        {"type": "reaction", "reaction": {"message_id": "wamid.x", "emoji": "👍🏽"}},
        {"type": "reaction", "reaction": {"message_id": "wamid.x", "emoji": "1\ufe0f\u20e3"}},
        template(values("Ayu"), LINK), template(IMAGE, name="pictured"),
        template(values("INV-1", parameter_name="order_id"), name="named"),
        {"text": {"body": "A message without a type is a text."}},
    ):  # fmt: skip
        answer = await program.send(body)
        assert answer.status_code == 200, (body, answer.text)
        assert answer.json()["messages"][0]["id"].startswith("wamid.")


@pytest.mark.parametrize(
    ("source", "message", "words"),
    [
        ("SOCIAL_NETWORK", {"text": "x" * 2001}, "message[text] must be less than or equal to 2000"),
        ("PHOTO_SOCIAL", {"text": "x" * 1001}, "message[text] must be less than or equal to 1000"),
        (
            "SOCIAL_NETWORK",
            {"attachment": {"type": "template", "payload": {"template_type": "button", "text": "x" * 641}}},
            "must be less than or equal to 640",
        ),
        (
            "PHOTO_SOCIAL",
            {"text": "Pilih", "quick_replies": [{"content_type": "text", "title": "a", "payload": "a"}] * 14},
            "message[quick_replies] must be less than or equal to 13",
        ),
    ],
)
async def test_messenger_and_instagram_refuse_what_is_too_long(
    program: OutsideProgram, source: str, message: Json, words: str
) -> None:
    body = {"recipient": {"id": "sim_happy"}, "messaging_type": "RESPONSE", "message": message}
    answer = await program.call("POST", "me/messages", source, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 100), answer.text
    assert words in answer.json()["error"]["message"]


async def test_a_token_has_to_be_one(program: OutsideProgram) -> None:
    url = f"{program.whatsapp['address']}/{program.number}"
    check(await program.http.get(url), (401, 190, None, "An access token is required"))
    check(
        await program.http.get(url, headers={"authorization": "Bearer EAAG"}),
        (401, 190, None, "Invalid OAuth access token - Cannot parse access token"),
    )
    wrong = f"sbx_{program.company_id}_{'0' * 32}"
    check(
        await program.http.get(url, headers={"authorization": f"Bearer {wrong}"}),
        (401, 190, 467, "The session is invalid"),
    )
    token = program.whatsapp["credentials"]["access_token"]
    assert (await program.http.get(url, params={"access_token": token})).json()["id"] == program.number


async def test_an_object_has_its_own_edges(program: OutsideProgram) -> None:
    body = {"messaging_product": "whatsapp", "to": HAPPY, **text("Halo")}
    for method, path in (
        ("POST", "123/messages"),
        ("POST", f"{program.business_account}/messages"),
        ("GET", f"{program.number}/message_templates"),
        ("POST", f"{program.number}/nothing"),
        ("PUT", f"{program.number}/messages"),
    ):
        answer = await program.call(method, path, json=body)
        check(answer, (400, 100, 33, f"Unsupported {method.lower()} request. Object with ID '{path.split('/')[0]}'"))
    page = program.accounts["SOCIAL_NETWORK"]
    url = f"{page['address']}/{program.number}/messages"
    answer = await program.http.post(url, json=body, headers=program.sign("SOCIAL_NETWORK"))
    check(answer, (403, 10, None, "does not have permission"))


async def test_a_body_that_is_not_json_is_refused(program: OutsideProgram) -> None:
    for content in (b"{", b"[]", b'"x"', b"\xff"):
        answer = await program.call("POST", f"{program.number}/messages", content=content)
        check(answer, (400, 100, None, "Invalid parameter"))


async def test_refused_messages_are_in_the_outbox(program: OutsideProgram) -> None:
    await program.send(text("y" * 4097))

    async def look() -> Json | None:
        listed = (await program.api.get("/sandbox/outbox", params={"limit": 100})).json()["data"]
        return next((entry for entry in listed if "y" * 100 in entry["body"]), None)

    entry = await eventually(look)
    assert entry["status"] == 400
    assert program.whatsapp["credentials"]["access_token"] not in str(entry)
