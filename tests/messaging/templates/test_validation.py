"""What a new template may consist of."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.http.errors import Invalid
from sapa.messaging.channels.abilities import NewTemplate
from sapa.messaging.channels.template_content import Header, TemplateContent
from sapa.messaging.channels.template_variables import list_variables
from sapa.messaging.channels.whatsapp.samples import list_samples
from sapa.messaging.channels.whatsapp.template_creation import build_template
from sapa.messaging.channels.whatsapp.template_parsing import parse_template
from sapa.messaging.templates.types import TemplateIn
from sapa.messaging.templates.validation import check_content
from sapa.sandbox.channels.template_review import review
from tests.messaging.templates.shapes import APPS, CARD_BUTTONS, PICTURE, SHAPES

Json = dict[str, Any]

CODE_BUTTON: Json = {"type": "otp", "otpType": "copy_code", "text": "Salin"}
CARD: Json = {"header": {"type": "image"}, "body": "Kopi {{1}} hari ini.", "buttons": CARD_BUTTONS}
CARDS: Json = {"cards": [CARD, CARD], "examples": {"cards": [{"header": PICTURE}] * 2}, "category": "MARKETING"}
PRODUCT: Json = {"header": {"type": "product"}, "buttons": [{"type": "spm", "text": "Lihat"}]}


def parse(**fields: Any) -> TemplateContent:
    """The content of a request, as the API reads it."""
    whole = {"name": "x", "language": "id", "category": "UTILITY", "body": "Halo, apa kabar?", **fields}
    body = msgspec.convert(whole, TemplateIn)
    named: Json = {name: getattr(body, name) for name in TemplateContent.__struct_fields__}
    header = Header("text", body.header) if isinstance(body.header, str) else body.header
    return TemplateContent(**named | {"body": body.body or "", "header": header})


def quick(count: int) -> list[Json]:
    return [{"type": "quick_reply", "text": f"Pilihan {number}"} for number in range(count)]


def link(url: str = "https://s.id/t", **more: Any) -> Json:
    return {"type": "url", "text": "Buka", "url": url, **more}


def code(**fields: Any) -> Json:
    return {"category": "AUTHENTICATION", "body": None, "buttons": [CODE_BUTTON | fields]}


WRONG: list[tuple[Json, str, str]] = [
    ({"body": "{{1}} halo, apa kabar?"}, "body", "begin or end"),
    ({"body": "Halo, apa kabar {{1}}"}, "body", "begin or end"),
    ({"body": "Halo, apa kabar {{1}}!"}, "body", "punctuation"),
    ({"body": "Halo {{1}} {{2}}, apa kabar?"}, "body", "between two"),
    ({"body": "Halo {{1}}, {{2}}, {{3}}, {{4}}, {{5}} ya."}, "body", "too many"),
    ({"body": "Halo {{name}} apa kabar?"}, "body", "parameterFormat"),
    ({"body": "Halo {{Name}} apa kabar?", "parameterFormat": "NAMED"}, "body", "small letters"),
    ({"body": "Halo {{2}} apa kabar?"}, "body", "without gaps"),
    ({"body": "Halo {{1}} apa kabar?", "examples": {"body": []}}, "examples.body", "{{1}}"),
    ({"body": "Halo {{1}} apa kabar?", "examples": {"body": [" "]}}, "examples.body", "one value"),
    ({"body": None}, "body", "blank"),
    ({"footer": "Halo {{1}}"}, "footer", "parameters"),
    ({"header": "Halo {{1}} dan {{2}}"}, "header.text", "at most one"),
    ({"header": "Pesanan\nAnda"}, "header.text", "one line"),
    ({"header": "*Pesanan* Anda"}, "header.text", "formatting"),
    ({"header": "_Pesanan_ Anda"}, "header.text", "formatting"),
    ({"header": "Pesanan Anda 🎉"}, "header.text", "emoji"),
    ({"footer": "Toko\nKopi"}, "footer", "one line"),
    ({"footer": "Toko ☕"}, "footer", "emoji"),
    ({"buttons": [{"type": "quick_reply", "text": "Ya\n"}]}, "buttons[0].text", "one line"),
    (
        {"buttons": [{"type": "phone_number", "text": "x", "phoneNumber": "081234567"}]},
        "buttons[0].phoneNumber",
        "code",
    ),
    ({"header": {"type": "unknown"}}, "header.type", "one of"),
    ({"header": {"type": "image"}}, "examples.header", "sample"),
    ({"header": {"type": "image"}, "examples": {"header": "nota"}}, "examples.header", "URL"),
    ({"examples": {"header": "x"}}, "examples.header", "absent"),
    ({"ttlSeconds": 29}, "ttlSeconds", "30 to 43200"),
    ({"ttlSeconds": 43_201}, "ttlSeconds", "30 to 43200"),
    ({"category": "MARKETING", "ttlSeconds": 600}, "ttlSeconds", "43200 to 2592000"),
    ({"buttons": [link(), *quick(1), link()]}, "buttons", "together"),
    ({"buttons": [*quick(1), link(), *quick(1)]}, "buttons", "together"),
    ({"buttons": [link(), link(), link()]}, "buttons", "at most 2"),
    ({"buttons": [{"type": "phone_number", "text": "x", "phoneNumber": "62812345"}] * 2}, "buttons", "at most 1"),
    ({"buttons": [link("shop.example")]}, "buttons[0].url", "complete URL"),
    ({"buttons": [link("https://{{1}}")]}, "buttons[0].url", "complete URL"),
    ({"buttons": [link("https://s.id/{{1}}/x")]}, "buttons[0].url", "very end"),
    ({"buttons": [link("https://s.id/{{2}}")]}, "buttons[0].url", "very end"),
    ({"buttons": [link(example="https://s.id/x")]}, "buttons[0].example", "absent"),
    ({"buttons": [link(flowId="1")]}, "buttons[0].flowId", "absent"),
    (
        {"buttons": [{"type": "phone_number", "text": "x", "phoneNumber": "telepon"}]},
        "buttons[0].phoneNumber",
        "number",
    ),
    ({"buttons": [{"type": "quick_reply"}]}, "buttons[0].text", "required"),
    ({"buttons": [{"type": "quick_reply", "text": "x" * 26}]}, "buttons[0].text", "25"),
    ({"buttons": [{"type": "copy_code", "example": "X"}]}, "buttons[0].type", "MARKETING"),
    ({"category": "MARKETING", "buttons": [{"type": "copy_code"}]}, "buttons[0].example", "required"),
    ({"category": "MARKETING", "buttons": [{"type": "copy_code", "example": "x" * 16}]}, "buttons[0].example", "15"),
    (
        {"category": "MARKETING", "buttons": [{"type": "copy_code", "text": "x", "example": "X"}]},
        "buttons[0].text",
        "absent",
    ),
    ({"buttons": [{"type": "flow", "text": "x"}]}, "buttons[0]", "flowId"),
    ({"buttons": [{"type": "flow", "text": "x", "flowId": "1", "flowName": "n"}]}, "buttons[0]", "one of"),
    ({"buttons": [{"type": "catalog", "text": "x"}, *quick(1)]}, "buttons", "no other"),
    ({"buttons": [{"type": "otp", "otpType": "copy_code"}]}, "buttons[0].type", "AUTHENTICATION"),
    ({"header": {"type": "product"}}, "header", "spm"),
    ({"buttons": PRODUCT["buttons"]}, "header", "product"),
    ({"limitedTimeOffer": {"text": "Segera"}}, "limitedTimeOffer", "MARKETING"),
    ({"category": "MARKETING", "limitedTimeOffer": {"text": "x" * 17}}, "limitedTimeOffer.text", "16"),
    ({"category": "MARKETING", "limitedTimeOffer": {"text": "x"}, "footer": "y"}, "footer", "absent"),
    ({"category": "MARKETING", "limitedTimeOffer": {"text": "x"}, "body": "y" * 601}, "body", "600"),
    ({**CARDS, "category": "UTILITY"}, "cards", "MARKETING"),
    ({**CARDS, "cards": [CARD]}, "cards", "2 to 10"),
    ({**CARDS, "footer": "x"}, "footer", "beside cards"),
    ({**CARDS, "examples": None}, "examples.cards[0].header", "sample"),
    ({**CARDS, "cards": [CARD, CARD | {"body": None}]}, "cards", "same parts"),
    ({**CARDS, "cards": [CARD | {"body": "x" * 161}, CARD]}, "cards[0].body", "160"),
    ({**CARDS, "cards": [CARD | {"buttons": []}, CARD]}, "cards[0].buttons", "1 to 2"),
    ({**CARDS, "cards": [CARD | {"header": {"type": "document"}}, CARD]}, "cards[0].header.type", "image"),
    ({**code(), "body": "Kode Anda {{1}} ya."}, "body", "channel writes"),
    ({**code(), "header": "Kode"}, "header", "channel writes"),
    ({**code(), "footer": "Toko"}, "footer", "channel writes"),
    ({**code(), "buttons": []}, "buttons", "otp"),
    ({**code(), "buttons": quick(1)}, "buttons", "otp"),
    ({**code(), "authentication": {"codeExpirationMinutes": 91}}, "authentication.codeExpirationMinutes", "1 to 90"),
    (code(supportedApps=APPS), "buttons[0].supportedApps", "copy_code"),
    (code(otpType="one_tap"), "buttons[0].supportedApps", "1 to 5"),
    (
        code(otpType="one_tap", supportedApps=[{"packageName": "com.x", "signatureHash": "short"}]),
        "buttons[0].supportedApps[0].signatureHash",
        "11",
    ),
    (code(otpType="zero_tap", supportedApps=APPS), "buttons[0].zeroTapTermsAccepted", "true"),
    ({"authentication": {}}, "authentication", "AUTHENTICATION"),
]


@pytest.mark.parametrize(("fields", "field", "words"), WRONG)
def test_what_a_channel_would_reject_is_refused_with_its_place(fields: Json, field: str, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_content(parse(**fields))
    assert refused.value.details is not None
    (detail,) = refused.value.details
    assert detail.field == field
    assert words in detail.message


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_is_valid_and_survives_the_channel(shape: Any) -> None:
    """What we submit is what we read again, apart from what the channel does not show."""
    content = parse(**({"body": None} | shape.template))
    check_content(content)
    request = build_template(NewTemplate("x", "id", content), dict.fromkeys(list_samples(content), PICTURE))
    assert review(request) is None
    if content.category == "AUTHENTICATION":
        return
    found = parse_template({"id": "1", "status": "APPROVED", "parameter_format": "POSITIONAL", **request})
    assert found is not None
    assert found.problem is None
    for name in ("category", "parameter_format", "header", "body", "footer", "buttons", "cards", "limited_time_offer"):
        assert strip_examples(getattr(found.content, name)) == strip_examples(getattr(content, name)), name


@pytest.mark.parametrize("text", ["Pesanan order_id 7", "Untuk {{order_id}}", "5 ~ 6 hari", "Kopi 60 °C"])
def test_a_header_may_have_signs_that_format_nothing(text: str) -> None:
    content = parse(header=text, body="Halo {{order_id}} ya.", parameterFormat="NAMED")
    check_content(content)
    assert review(build_template(NewTemplate("x", "id", content), {})) is None


def strip_examples(part: Any) -> Any:
    """Default examples are added on the way."""
    plain = msgspec.to_builtins(part)
    for button in plain if isinstance(plain, list) else []:
        button.pop("example", None)
        strip_examples(button.get("buttons"))
    return plain


_words = st.lists(
    st.sampled_from(["Halo", "pesanan", "{{1}}", "{{2}}", "{{3}}", ",", ".", "!", "kopi", "\n", "☕"]), max_size=12
)


@given(words=_words, glue=st.sampled_from(["", " "]))
def test_a_body_that_we_accept_is_approved_by_the_simulator(words: list[str], glue: str) -> None:
    """Two independent readings of the same rules. A channel may still be stricter than both."""
    text = glue.join(words)
    try:
        content = parse(body=text or None)
        check_content(content)
    except (Invalid, msgspec.ValidationError):
        return
    request = build_template(NewTemplate("x", "id", content), {})
    refusal = review(request)
    assert refusal is None or "☕" in text, refusal
    assert list(list_variables(text)) == [str(number) for number in range(1, len(list_variables(text)) + 1)]
