"""The demo shop's templates: one of each kind that shops use."""

from collections.abc import Sequence

from sapa.messaging.channels.template_content import (
    Authentication,
    CardExamples,
    Header,
    LimitedTimeOffer,
    TemplateButton,
    TemplateCard,
    TemplateExamples,
)
from sapa.messaging.templates.types import TemplateIn

LANGUAGE = "id"
SHOP = "https://shop.example"


def _build_card(coffee: str) -> TemplateCard:
    link = TemplateButton(type="url", text="Beli", url=f"{SHOP}/{coffee.lower()}/{{{{1}}}}", example=f"{SHOP}/promo")
    return TemplateCard(Header("image"), f"Kopi {coffee}, disangrai minggu ini.", [link])


COFFEES = ("Gayo", "Toraja", "Kintamani")
TEMPLATES: Sequence[TemplateIn] = (
    TemplateIn(
        name="demo_order_confirmed",
        language=LANGUAGE,
        category="UTILITY",
        header=Header("text", "Pesanan {{1}}"),
        body="Halo {{1}}, pesanan Anda sebesar {{2}} sudah kami terima.",
        footer="Toko Kopi",
        buttons=[
            TemplateButton(type="url", text="Lihat pesanan", url=f"{SHOP}/o/{{{{1}}}}", example=f"{SHOP}/o/1042"),
            TemplateButton(type="phone_number", text="Telepon kami", phone_number="+622150001234"),
        ],
        examples=TemplateExamples("INV-1042", ["Ayu", "Rp150.000"]),
    ),
    TemplateIn(
        name="demo_invoice",
        language=LANGUAGE,
        category="UTILITY",
        parameter_format="NAMED",
        header=Header("document"),
        body="Halo {{nama}}, terlampir faktur {{nomor}} untuk pesanan Anda.",
        examples=TemplateExamples(f"{SHOP}/invoice.pdf", {"nama": "Ayu", "nomor": "INV-1042"}),
    ),
    TemplateIn(
        name="demo_feedback",
        language=LANGUAGE,
        category="UTILITY",
        body="Halo {{1}}, bagaimana pesanan Anda?",
        buttons=[TemplateButton(type="quick_reply", text=text) for text in ("Bagus", "Kurang")],
        examples=TemplateExamples(body=["Ayu"]),
    ),
    TemplateIn(
        name="demo_login_code",
        language=LANGUAGE,
        category="AUTHENTICATION",
        buttons=[TemplateButton(type="otp", text="Salin kode", otp_type="copy_code")],
        ttl_seconds=300,
        authentication=Authentication(code_expiration_minutes=5),
    ),
    TemplateIn(
        name="demo_weekend_offer",
        language=LANGUAGE,
        category="MARKETING",
        header=Header("image"),
        body="Halo {{1}}, diskon akhir pekan untuk semua kopi.",
        buttons=[TemplateButton(type="copy_code", example="KOPI20")],
        limited_time_offer=LimitedTimeOffer("Segera berakhir"),
        examples=TemplateExamples(f"{SHOP}/kopi.jpg", ["Ayu"]),
    ),
    TemplateIn(
        name="demo_new_coffees",
        language=LANGUAGE,
        category="MARKETING",
        body="Kopi baru minggu ini, khusus untuk Anda.",
        cards=[_build_card(coffee) for coffee in COFFEES],
        examples=TemplateExamples(cards=[CardExamples(f"{SHOP}/{coffee.lower()}.jpg") for coffee in COFFEES]),
    ),
)
