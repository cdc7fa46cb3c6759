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

PICTURE = "https://shop.example/kopi.jpg"

CONTENTS: Mapping[str, Content] = {
    "text": Text("Halo ☕", subject="Pesanan Anda"),
    "image": Media("image", PICTURE, caption="Kopi Gayo"),
    "video": Media("video", "https://shop.example/kopi.mp4"),
    "audio": Media("audio", "https://shop.example/kopi.ogg", caption="never sent"),
    "document": Media("document", "https://shop.example/nota.pdf", caption="Nota", filename="nota.pdf"),
    "template": TemplateCall(
        "order_update", "id", ["Budi", "INV-1"], Media("image", PICTURE), "Halo Budi, INV-1 dikirim.", "INV-1"
    ),
    "template_plain": TemplateCall("hello", "en_US", [], None, "Hello."),
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
}
