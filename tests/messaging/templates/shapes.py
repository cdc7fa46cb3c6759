"""Every shape of template: as the API takes it, as WhatsApp documents its creation, and as WhatsApp documents a message
with it."""

from typing import Any

from msgspec import Struct

Json = dict[str, Any]

HANDLE = "<the handle of an uploaded sample>"
BODY = "Halo {{1}}, pesanan {{2}} sudah dikirim."
NAMED_BODY = "Halo {{name}}, pesanan {{order_id}} sudah dikirim."
PLAIN: Json = {"type": "BODY", "text": "Toko Kopi buka sampai malam."}
PICTURE = "https://shop.example/kopi.jpg"


class Shape(Struct, frozen=True, kw_only=True):
    name: str
    template: Json
    """What POST /templates takes, besides name and language."""
    created: list[Json]
    """The components of WhatsApp's request."""
    send: Json = {}
    """What send-template takes, besides the recipient and the template."""
    sent: list[Json] | None = None
    """The components of WhatsApp's message; None if it has none."""
    more: Json = {}
    """Other fields of the request that creates it."""


def text(value: str, name: str | None = None) -> Json:
    return {"type": "text", **({"parameter_name": name} if name else {}), "text": value}


def button(sub_type: str, index: int, parameter: Json) -> Json:
    return {"type": "button", "sub_type": sub_type, "index": str(index), "parameters": [parameter]}


def utility(**parts: Any) -> Json:
    return {"category": "UTILITY", "body": PLAIN["text"], **parts}


def marketing(**parts: Any) -> Json:
    return {"category": "MARKETING", "body": PLAIN["text"], **parts}


def media(type: str, url: str, **fields: str) -> Shape:
    return Shape(
        name=f"header_{type}",
        template=utility(header={"type": type}, examples={"header": url}),
        created=[{"type": "HEADER", "format": type.upper(), "example": {"header_handle": [HANDLE]}}, PLAIN],
        send={"components": {"header": {"mediaUrl": url, **fields}}},
        sent=[{"type": "header", "parameters": [{"type": type, type: {"link": url, **fields}}]}],
    )


def code(name: str, api_button: Json, wire_button: Json) -> Shape:
    return Shape(
        name=name,
        template={
            "category": "AUTHENTICATION",
            "ttlSeconds": 300,
            "authentication": {"securityRecommendation": True, "codeExpirationMinutes": 5},
            "buttons": [{"type": "otp", **api_button}],
        },
        created=[
            {"type": "BODY", "add_security_recommendation": True},
            {"type": "FOOTER", "code_expiration_minutes": 5},
            {"type": "BUTTONS", "buttons": [{"type": "OTP", **wire_button}]},
        ],
        more={"message_send_ttl_seconds": 300},
        send={"template_source": "AUTH", "params": ["482913"]},
        sent=[{"type": "body", "parameters": [text("482913")]}, button("url", 0, text("482913"))],
    )


APPS = [{"packageName": "com.tokokopi.app", "signatureHash": "K8a/AINcGX7"}]
WIRE_APPS = [{"package_name": "com.tokokopi.app", "signature_hash": "K8a/AINcGX7"}]
CARD_BUTTONS: list[Json] = [
    {"type": "quick_reply", "text": "Tanya"},
    {"type": "url", "text": "Beli", "url": "https://s.id/p/{{1}}", "example": "https://s.id/p/gayo"},
]
WIRE_CARD_BUTTONS: list[Json] = [
    {"type": "QUICK_REPLY", "text": "Tanya"},
    {"type": "URL", "text": "Beli", "url": "https://s.id/p/{{1}}", "example": ["https://s.id/p/gayo"]},
]


def wire_card(number: int, sku: str) -> Json:
    return {
        "card_index": number,
        "components": [
            {"type": "header", "parameters": [{"type": "image", "image": {"link": PICTURE}}]},
            {"type": "body", "parameters": [text(sku)]},
            button("quick_reply", 0, {"type": "payload", "payload": f"ask-{sku}"}),
            button("url", 1, text(sku)),
        ],
    }


def card_value(sku: str) -> Json:
    return {
        "header": {"mediaUrl": PICTURE},
        "body": [sku],
        "buttons": [{"index": 0, "payload": f"ask-{sku}"}, {"index": 1, "suffix": sku}],
    }


WIRE_NEW_CARD: Json = {
    "components": [
        {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [HANDLE]}},
        {"type": "BODY", "text": "Kopi {{1}} hari ini.", "example": {"body_text": [["Gayo"]]}},
        {"type": "BUTTONS", "buttons": WIRE_CARD_BUTTONS},
    ]
}

SHAPES = [
    Shape(
        name="body_positional",
        template={"category": "UTILITY", "body": BODY, "examples": {"body": ["Budi", "INV-1"]}, "ttlSeconds": 43200},
        created=[{"type": "BODY", "text": BODY, "example": {"body_text": [["Budi", "INV-1"]]}}],
        more={"message_send_ttl_seconds": 43200},
        send={"params": ["Budi", "INV-1"]},
        sent=[{"type": "body", "parameters": [text("Budi"), text("INV-1")]}],
    ),
    Shape(
        name="body_named",
        template={
            "category": "UTILITY",
            "parameterFormat": "NAMED",
            "body": NAMED_BODY,
            "examples": {"body": {"name": "Budi", "order_id": "INV-1"}},
        },
        created=[
            {
                "type": "BODY",
                "text": NAMED_BODY,
                "example": {
                    "body_text_named_params": [
                        {"param_name": "name", "example": "Budi"},
                        {"param_name": "order_id", "example": "INV-1"},
                    ]
                },
            }
        ],
        more={"parameter_format": "NAMED"},
        send={"components": {"body": {"order_id": "INV-1", "name": "Budi"}}},
        sent=[{"type": "body", "parameters": [text("Budi", "name"), text("INV-1", "order_id")]}],
    ),
    Shape(
        name="header_text",
        template=utility(header="Promo {{1}} dimulai", examples={"header": "Ramadan"}, footer="Toko Kopi"),
        created=[
            {
                "type": "HEADER",
                "format": "TEXT",
                "text": "Promo {{1}} dimulai",
                "example": {"header_text": ["Ramadan"]},
            },
            PLAIN,
            {"type": "FOOTER", "text": "Toko Kopi"},
        ],
        send={"params": ["Lebaran"]},
        sent=[{"type": "header", "parameters": [text("Lebaran")]}],
    ),
    Shape(
        name="header_text_named",
        template=utility(parameterFormat="NAMED", header="Promo {{event}} dimulai", examples={"header": "Ramadan"}),
        created=[
            {
                "type": "HEADER",
                "format": "TEXT",
                "text": "Promo {{event}} dimulai",
                "example": {"header_text_named_params": [{"param_name": "event", "example": "Ramadan"}]},
            },
            PLAIN,
        ],
        more={"parameter_format": "NAMED"},
        send={"components": {"header": {"text": "Lebaran"}}},
        sent=[{"type": "header", "parameters": [text("Lebaran", "event")]}],
    ),
    media("image", PICTURE),
    media("video", "https://shop.example/kopi.mp4"),
    media("document", "https://shop.example/nota.pdf", filename="nota.pdf"),
    Shape(
        name="header_location",
        template=utility(header={"type": "location"}),
        created=[{"type": "HEADER", "format": "LOCATION"}, PLAIN],
        send={
            "components": {
                "header": {"location": {"latitude": -6.2, "longitude": 106.8, "name": "Toko", "address": "Jl. Kopi 1"}}
            }
        },
        sent=[
            {
                "type": "header",
                "parameters": [
                    {
                        "type": "location",
                        "location": {
                            "latitude": "-6.2",
                            "longitude": "106.8",
                            "name": "Toko",
                            "address": "Jl. Kopi 1",
                        },
                    }
                ],
            }
        ],
    ),
    Shape(
        name="quick_replies",
        template=marketing(
            buttons=[{"type": "quick_reply", "text": "Stop promo"}, {"type": "quick_reply", "text": "Lihat"}]
        ),
        created=[
            PLAIN,
            {
                "type": "BUTTONS",
                "buttons": [{"type": "QUICK_REPLY", "text": "Stop promo"}, {"type": "QUICK_REPLY", "text": "Lihat"}],
            },
        ],
        send={"components": {"buttons": [{"index": 1, "payload": "see-1"}]}},
        sent=[button("quick_reply", 1, {"type": "payload", "payload": "see-1"})],
    ),
    Shape(
        name="links_and_calls",
        template=utility(
            buttons=[
                {"type": "url", "text": "Lacak", "url": "https://s.id/t"},
                {"type": "phone_number", "text": "Telepon", "phoneNumber": "6281234567890"},
                {"type": "voice_call", "text": "Panggil"},
            ]
        ),
        created=[
            PLAIN,
            {
                "type": "BUTTONS",
                "buttons": [
                    {"type": "URL", "text": "Lacak", "url": "https://s.id/t"},
                    {"type": "PHONE_NUMBER", "text": "Telepon", "phone_number": "6281234567890"},
                    {"type": "VOICE_CALL", "text": "Panggil"},
                ],
            },
        ],
    ),
    Shape(
        name="url_suffix",
        template=utility(
            buttons=[
                {"type": "quick_reply", "text": "Terima kasih"},
                {"type": "url", "text": "Lacak", "url": "https://s.id/t/{{1}}", "example": "https://s.id/t/abc"},
            ]
        ),
        created=[
            PLAIN,
            {
                "type": "BUTTONS",
                "buttons": [
                    {"type": "QUICK_REPLY", "text": "Terima kasih"},
                    {
                        "type": "URL",
                        "text": "Lacak",
                        "url": "https://s.id/t/{{1}}",
                        "example": ["https://s.id/t/abc"],
                    },
                ],
            },
        ],
        send={"params": ["abc"]},
        sent=[button("url", 1, text("abc"))],
    ),
    Shape(
        name="coupon",
        template=marketing(buttons=[{"type": "copy_code", "example": "25OFF"}]),
        created=[PLAIN, {"type": "BUTTONS", "buttons": [{"type": "COPY_CODE", "example": "25OFF"}]}],
        send={"params": ["30OFF"]},
        sent=[button("copy_code", 0, {"type": "coupon_code", "coupon_code": "30OFF"})],
    ),
    Shape(
        name="limited_time_offer",
        template=marketing(limitedTimeOffer={"text": "Segera!", "hasExpiration": True}),
        created=[
            {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Segera!", "has_expiration": True}},
            PLAIN,
        ],
        send={"components": {"limitedTimeOffer": {"expiresAt": "2026-09-21T14:13:20Z"}}},
        sent=[
            {
                "type": "limited_time_offer",
                "parameters": [
                    {
                        "type": "limited_time_offer",
                        "limited_time_offer": {"expiration_time_ms": 1_790_000_000_000},
                    }
                ],
            }
        ],
    ),
    Shape(
        name="flow",
        template=utility(
            buttons=[{"type": "flow", "text": "Isi", "flowId": "12", "flowAction": "navigate", "navigateScreen": "S1"}]
        ),
        created=[
            PLAIN,
            {
                "type": "BUTTONS",
                "buttons": [
                    {"type": "FLOW", "text": "Isi", "flow_id": "12", "flow_action": "navigate", "navigate_screen": "S1"}
                ],
            },
        ],
        send={"components": {"buttons": [{"index": 0, "flowToken": "t", "flowData": {}}]}},
        sent=[button("flow", 0, {"type": "action", "action": {"flow_token": "t", "flow_action_data": {}}})],
    ),
    Shape(
        name="catalog",
        template=marketing(buttons=[{"type": "catalog", "text": "Lihat katalog"}]),
        created=[PLAIN, {"type": "BUTTONS", "buttons": [{"type": "CATALOG", "text": "Lihat katalog"}]}],
        send={"components": {"buttons": [{"index": 0, "productId": "SKU"}]}},
        sent=[button("catalog", 0, {"type": "action", "action": {"thumbnail_product_retailer_id": "SKU"}})],
    ),
    Shape(
        name="products",
        template=marketing(buttons=[{"type": "mpm", "text": "Lihat"}]),
        created=[PLAIN, {"type": "BUTTONS", "buttons": [{"type": "MPM", "text": "Lihat"}]}],
        send={
            "components": {
                "buttons": [{"index": 0, "productId": "SKU", "sections": [{"title": "S", "productIds": ["SKU"]}]}]
            }
        },
        sent=[
            button(
                "mpm",
                0,
                {
                    "type": "action",
                    "action": {
                        "thumbnail_product_retailer_id": "SKU",
                        "sections": [{"title": "S", "product_items": [{"product_retailer_id": "SKU"}]}],
                    },
                },
            )
        ],
    ),
    Shape(
        name="product",
        template=marketing(header={"type": "product"}, buttons=[{"type": "spm", "text": "Lihat"}]),
        created=[
            {"type": "HEADER", "format": "PRODUCT"},
            PLAIN,
            {"type": "BUTTONS", "buttons": [{"type": "SPM", "text": "Lihat"}]},
        ],
        send={"components": {"header": {"product": {"productId": "SKU", "catalogId": "77"}}}},
        sent=[
            {
                "type": "header",
                "parameters": [{"type": "product", "product": {"product_retailer_id": "SKU", "catalog_id": "77"}}],
            }
        ],
    ),
    Shape(
        name="carousel",
        template=marketing(
            cards=[{"header": {"type": "image"}, "body": "Kopi {{1}} hari ini.", "buttons": CARD_BUTTONS}] * 2,
            examples={"cards": [{"header": PICTURE, "body": ["Gayo"]}] * 2},
        ),
        created=[PLAIN, {"type": "CAROUSEL", "cards": [WIRE_NEW_CARD, WIRE_NEW_CARD]}],
        send={"components": {"cards": [card_value("gayo"), card_value("toraja")]}},
        sent=[{"type": "carousel", "cards": [wire_card(0, "gayo"), wire_card(1, "toraja")]}],
    ),
    code("code_copy", {"otpType": "copy_code", "text": "Salin kode"}, {"otp_type": "COPY_CODE", "text": "Salin kode"}),
    code(
        "code_one_tap",
        {"otpType": "one_tap", "text": "Salin", "autofillText": "Isi otomatis", "supportedApps": APPS},
        {"otp_type": "ONE_TAP", "text": "Salin", "autofill_text": "Isi otomatis", "supported_apps": WIRE_APPS},
    ),
    code(
        "code_zero_tap",
        {
            "otpType": "zero_tap",
            "text": "Salin",
            "autofillText": "Isi",
            "supportedApps": APPS,
            "zeroTapTermsAccepted": True,
        },
        {
            "otp_type": "ZERO_TAP",
            "text": "Salin",
            "autofill_text": "Isi",
            "supported_apps": WIRE_APPS,
            "zero_tap_terms_accepted": True,
        },
    ),
    Shape(
        name="everything_by_params",
        template={
            "category": "UTILITY",
            "header": "Nota {{1}}",
            "body": BODY,
            "buttons": [{"type": "url", "text": "Lacak", "url": "https://s.id/t/{{1}}"}],
        },
        created=[
            {"type": "HEADER", "format": "TEXT", "text": "Nota {{1}}", "example": {"header_text": ["text 1"]}},
            {"type": "BODY", "text": BODY, "example": {"body_text": [["text 1", "text 2"]]}},
            {
                "type": "BUTTONS",
                "buttons": [
                    {
                        "type": "URL",
                        "text": "Lacak",
                        "url": "https://s.id/t/{{1}}",
                        "example": ["https://s.id/t/example"],
                    }
                ],
            },
        ],
        send={"params": ["Budi", "INV-1", "1042", "abc"]},
        sent=[
            {"type": "header", "parameters": [text("1042")]},
            {"type": "body", "parameters": [text("Budi"), text("INV-1")]},
            button("url", 0, text("abc")),
        ],
    ),
]
