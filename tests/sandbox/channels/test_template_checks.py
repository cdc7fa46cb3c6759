"""The simulator refuses what WhatsApp refuses, with its codes and words."""

import json
from typing import Any

import pytest

from sapa.sandbox.channels.graph_errors import build_refusal
from sapa.sandbox.channels.template_checks import find_mistake, find_status_mistake
from sapa.sandbox.channels.template_review import review
from tests.messaging.templates.shapes import SHAPES, Json, button, text

BODY: Json = {
    "type": "BODY",
    "text": "Halo {{1}}, pesanan {{2}} tiba {{3}} sore.",
    "example": {"body_text": [["a", "b", "c"]]},
}
VALUES: Json = {"type": "body", "parameters": [text("a"), text("b"), text("c")]}
URL: Json = {"type": "URL", "text": "Buka", "url": "https://s.id/{{1}}", "example": ["https://s.id/x"]}
PHONE: Json = {"type": "PHONE_NUMBER", "text": "Telepon", "phone_number": "62812345678"}


def stored(*components: Json, **fields: Any) -> Json:
    return {"name": "t", "language": "id", "category": "UTILITY", "components": list(components), **fields}


def buttons(*listed: Json) -> Json:
    return {"type": "BUTTONS", "buttons": list(listed)}


def header(format: str, **fields: Any) -> Json:
    return {"type": "HEADER", "format": format, **fields}


NAMED = stored(
    {
        "type": "BODY",
        "text": "Pesanan {{order_id}} tiba.",
        "example": {"body_text_named_params": [{"param_name": "order_id", "example": "x"}]},
    },
    parameter_format="NAMED",
)
PLAIN: Json = {"type": "BODY", "text": "Halo semua."}
IMAGE = stored(header("IMAGE", example={"header_handle": ["4::x"]}), PLAIN)
LINKED = stored(PLAIN, buttons(URL))

MISTAKES: list[tuple[str, Json, list[Any], int, str]] = [
    (
        "too few body params",
        stored(BODY),
        [{"type": "body", "parameters": [text("a")]}],
        132000,
        "body: number of localizable_params (1) does not match the expected number of params (3)",
    ),
    ("no body at all", stored(BODY), [], 132000, "number of localizable_params (0)"),
    ("too many body params", stored(PLAIN), [VALUES], 132000, "(3) does not match the expected number of params (0)"),
    (
        "header param missing",
        stored(header("TEXT", text="Nota {{1}}", example={"header_text": ["x"]}), PLAIN),
        [],
        132000,
        "header: number of localizable_params (0) does not match the expected number of params (1)",
    ),
    ("header media missing", IMAGE, [], 132012, "header: Format mismatch, expected IMAGE, received UNKNOWN"),
    (
        "wrong header kind",
        stored(header("TEXT", text="Nota"), PLAIN),
        [{"type": "header", "parameters": [{"type": "image", "image": {"link": "https://x.example"}}]}],
        132012,
        "header: Format mismatch, expected TEXT, received IMAGE",
    ),
    ("location missing", stored(header("LOCATION"), PLAIN), [], 132012, "expected LOCATION, received UNKNOWN"),
    (
        "media without id or link",
        IMAGE,
        [{"type": "header", "parameters": [{"type": "image", "image": {}}]}],
        132018,
        "Either one of media ID or link must be present",
    ),
    (
        "media object missing",
        IMAGE,
        [{"type": "header", "parameters": [{"type": "image"}]}],
        100,
        "JSON schema constraint 'required' for the JSON field 'template.components.0.parameters.0.image'",
    ),
    ("component without a type", stored(PLAIN), [{"parameters": []}], 100, "'template.components.0.type'"),
    (
        "newline in a param",
        stored(BODY),
        [{"type": "body", "parameters": [text("a\nb"), text("b"), text("c")]}],
        132018,
        "cannot have new-line/tab characters or more than 4 consecutive spaces",
    ),
    (
        "many spaces in a param",
        stored(BODY),
        [{"type": "body", "parameters": [text("a     b"), text("b"), text("c")]}],
        132018,
        "consecutive spaces",
    ),
    (
        "empty param",
        stored(BODY),
        [{"type": "body", "parameters": [text(""), text("b"), text("c")]}],
        100,
        "Parameter 'text' is mandatory for component parameter type 'text'",
    ),
    (
        "empty button param",
        LINKED,
        [button("url", 0, text(""))],
        100,
        "button: Parameter 'text' is mandatory for component parameter type 'text' and cannot be empty",
    ),
    (
        "named template without names",
        NAMED,
        [{"type": "body", "parameters": [text("x")]}],
        100,
        "Parameter name is missing or empty",
    ),
    (
        "named template with a wrong name",
        NAMED,
        [{"type": "body", "parameters": [text("x", "order")]}],
        100,
        "Parameter name is missing for the parameter '{{order_id}}'",
    ),
    (
        "url button without its end",
        LINKED,
        [],
        131008,
        "buttons: Button at index 0 of type Url requires a parameter",
    ),
    (
        "code button without its code",
        stored(
            {"type": "BODY", "add_security_recommendation": True},
            buttons({"type": "OTP", "otp_type": "COPY_CODE"}),
            category="AUTHENTICATION",
        ),
        [{"type": "body", "parameters": [text("1234")]}],
        131008,
        "Button at index 0 of type Url requires a parameter",
    ),
    (
        "coupon missing",
        stored(PLAIN, buttons({"type": "COPY_CODE", "example": "X"}), category="MARKETING"),
        [],
        131008,
        "of type CopyCode requires a parameter",
    ),
    (
        "other sub_type at that index",
        stored(PLAIN, buttons({"type": "QUICK_REPLY", "text": "x"}, URL)),
        [button("quick_reply", 1, {"type": "payload", "payload": "x"})],
        132018,
        "buttons: Button at index 1 must be of type Url",
    ),
    (
        "parameter for a phone button",
        stored(PLAIN, buttons(PHONE)),
        [button("url", 0, text("x"))],
        100,
        "buttons: Button at index 0 is of type Call and does not support parameters",
    ),
    ("no such button", stored(PLAIN), [button("url", 0, text("x"))], 132018, "There is no button at index 0"),
    (
        "filled text too long",
        stored(BODY, {"type": "FOOTER", "text": "Toko"}),
        [{"type": "body", "parameters": [text("x" * 1020), text("b"), text("c")]}],
        132005,
        "1024",
    ),
    (
        "filled text too long without other parts",
        stored(BODY),
        [{"type": "body", "parameters": [text("x" * 32_768), text("b"), text("c")]}],
        132005,
        "32768",
    ),
    (
        "code too long",
        stored(
            {"type": "BODY", "add_security_recommendation": True},
            buttons({"type": "OTP", "otp_type": "COPY_CODE"}),
            category="AUTHENTICATION",
        ),
        [{"type": "body", "parameters": [text("1")]}, button("url", 0, text("1" * 16))],
        131009,
        "longer than 15",
    ),
    (
        "offer in seconds",
        stored(
            {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "x", "has_expiration": True}},
            PLAIN,
            category="MARKETING",
        ),
        [
            {
                "type": "limited_time_offer",
                "parameters": [
                    {"type": "limited_time_offer", "limited_time_offer": {"expiration_time_ms": 1_790_000_000}}
                ],
            }
        ],
        131009,
        "milliseconds",
    ),
]


@pytest.mark.parametrize(
    ("name", "template", "components", "code", "details"), MISTAKES, ids=lambda value: str(value)[:40]
)
def test_a_mistake_in_a_message_is_refused(
    name: str, template: Json, components: list[Any], code: int, details: str
) -> None:
    refusal = find_mistake(template, {"name": "t", "language": {"code": "id"}, "components": components})
    assert refusal is not None
    answer = build_refusal(refusal)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["type"]) == (400, code, "OAuthException")
    assert error["message"].startswith(f"(#{code}) ")
    assert details in error.get("error_data", {}).get("details", error["message"])
    assert error["fbtrace_id"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_is_accepted(shape: Any) -> None:
    template = stored(*shape.created, category=shape.template["category"], **shape.more)
    assert review(template) is None
    assert find_mistake(template, {"name": "t", "language": {"code": "id"}, "components": shape.sent or []}) is None


@pytest.mark.parametrize(
    ("status", "code", "http_status"),
    [
        (None, 132001, 404),
        ("PENDING", 132001, 404),
        ("REJECTED", 132001, 404),
        ("PAUSED", 132015, 400),
        ("DISABLED", 132016, 400),
    ],
)
def test_a_template_that_is_not_approved_is_refused(status: str | None, code: int, http_status: int) -> None:
    refusal = find_status_mistake(status, "t", "id")
    assert refusal is not None
    assert (refusal.code, refusal.status) == (code, http_status)
    assert find_status_mistake("APPROVED", "t", "id") is None


LONG: Json = {"type": "BODY", "text": "x" * 1025}
CREATIONS: list[tuple[str, Json, int, int | None]] = [
    ("text too long", stored(LONG), 100, 2388040),
    ("no body text", stored({"type": "BODY"}), 100, 2388047),
    ("footer with a variable", stored(PLAIN, {"type": "FOOTER", "text": "Halo {{1}}"}), 100, 2388073),
    (
        "too many variables",
        stored({"type": "BODY", "text": "A {{1}}, {{2}}, {{3}}, {{4}} b"}),
        100,
        2388293,
    ),
    ("header of two lines", stored(header("TEXT", text="a\nb"), PLAIN), 100, 2388047),
    ("header with formatting", stored(header("TEXT", text="*a* b"), PLAIN), 100, 2388047),
    ("header with an emoji", stored(header("TEXT", text="a 🎉"), PLAIN), 100, 2388047),
    ("footer with an emoji", stored(PLAIN, {"type": "FOOTER", "text": "a ☕"}), 100, 2388073),
    ("footer of two lines", stored(PLAIN, {"type": "FOOTER", "text": "a\nb"}), 100, 2388073),
    ("button of two lines", stored(PLAIN, buttons({"type": "QUICK_REPLY", "text": "a\nb"})), 100, None),
    ("unsupported language", stored(PLAIN) | {"language": "jv"}, 100, None),
    ("variable at the end", stored({"type": "BODY", "text": "Halo {{1}}!"}), 100, 2388299),
    ("variable at the start", stored({"type": "BODY", "text": "{{1}} halo"}), 100, 2388299),
    ("no sample", stored(header("IMAGE"), PLAIN), 100, 2388273),
    ("no example", stored({"type": "BODY", "text": "Halo {{1}} ya"}), 100, 2388047),
    ("bad phone number", stored(PLAIN, buttons(PHONE | {"phone_number": "telepon"})), 192, None),
    ("unknown category", stored(PLAIN, category="NEWS"), 100, None),
    ("text in an authentication template", stored(PLAIN, category="AUTHENTICATION"), 100, 2388047),
    ("buttons not grouped", stored(PLAIN, buttons(PHONE, {"type": "QUICK_REPLY", "text": "x"}, URL)), 100, None),
    ("one card", stored(PLAIN, {"type": "CAROUSEL", "cards": [{}]}, category="MARKETING"), 100, None),
    ("ttl out of range", stored(PLAIN, message_send_ttl_seconds=5), 100, None),
]


@pytest.mark.parametrize(("name", "template", "code", "subcode"), CREATIONS, ids=[each[0] for each in CREATIONS])
def test_a_mistake_in_a_template_is_refused(name: str, template: Json, code: int, subcode: int | None) -> None:
    refusal = review(template)
    assert refusal is not None
    error = json.loads(build_refusal(refusal).body)["error"]
    assert (error["code"], error.get("error_subcode")) == (code, subcode)
    if code == 100:
        assert error["error_user_title"]
        assert error["error_user_msg"]
        assert "error_data" not in error
