"""One content of each kind, for every channel."""

from collections.abc import Mapping

from sapa.messaging.channels.interface import (
    Button,
    Buttons,
    Choices,
    Content,
    LinkButton,
    ListRow,
    Media,
    Section,
    TemplateCall,
    Text,
)
from sapa.messaging.channels.native_contents import (
    CatalogProduct,
    FlowButton,
    LocationRequest,
    ProductCard,
    ProductChoices,
    ProductSection,
    TemplateParameter,
)

PICTURE = "https://shop.example/kopi.jpg"

CONTENTS: Mapping[str, Content] = {
    "text": Text("Halo ☕", subject="Pesanan Anda"),
    "image": Media("image", PICTURE, caption="Kopi Gayo"),
    "video": Media("video", "https://shop.example/kopi.mp4"),
    "audio": Media("audio", "https://shop.example/kopi.ogg", caption="never sent"),
    "document": Media("document", "https://shop.example/nota.pdf", caption="Nota", filename="nota.pdf"),
    "template": TemplateCall(
        name="order_update",
        language="id",
        rendered="Halo Budi, INV-1 dikirim.",
        header_media=Media("image", PICTURE),
        body=[TemplateParameter("Budi"), TemplateParameter("INV-1")],
        subject="INV-1",
    ),
    "template_plain": TemplateCall(name="hello", language="en_US", rendered="Hello."),
    "uploaded_image": Media("image", PICTURE, caption="Kopi Gayo", channel_id="1479537139650973"),
    "buttons": Buttons("Sudah sampai?", [Button("yes", "Ya"), Button("no", "Belum")], "INV-1", "Toko Kopi"),
    "list": Choices(
        "Pilih kopi",
        "Lihat",
        [
            Section("Arabika", [ListRow("gayo", "Gayo", "Aceh"), ListRow("toraja", "Toraja")]),
            Section("Lain", [ListRow("x", "Teh")]),
        ],
    ),
    "link": LinkButton("Lacak pesanan", "Lacak", "https://shop.example/t/1?a=b&c=d"),
    "flow": FlowButton(body="Isi data", button="Isi", flow_id="12", token="t", screen="S1", data={}),
    "flow_of_server": FlowButton(body="Isi data", button="Isi", flow_id="12", token="t", is_draft=True, footer="Toko"),
    "product": ProductCard(CatalogProduct("SKU", "77"), "Kopi Gayo", "Toko Kopi"),
    "product_list": ProductChoices("77", "Kopi", "Pilih kopi", [ProductSection("Arabika", ["SKU", "SKU-2"])]),
    "location_request": LocationRequest("Kirim lokasi Anda"),
}
