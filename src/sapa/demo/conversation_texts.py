"""What the demo shop's customers and agents wrote: half of it waits for an answer."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from sapa.messaging.channels.interface import Source
from sapa.support.types import Priority

Author = Literal["customer", "Sari", "Budi", "Asisten", "note"]
DAY = 24 * 60


class DemoLine(Struct, frozen=True):
    """A message, or a note of the agent who has the conversation."""

    minutes_ago: int
    author: Author
    text: str


class DemoConversation(Struct, frozen=True):
    """A conversation from its first message on."""

    source: Source
    lines: Sequence[DemoLine]
    customer: int | None = None
    """The number of a demo customer, who writes from their phone or mailbox. Others have a name and an id."""
    name: str | None = None
    id: str = ""
    stated_contact: str | None = None
    """What a visitor of the web chat answered to the form before the chat."""
    subject: str | None = None
    label: str | None = None
    priority: Priority | None = None
    snoozed_hours: int | None = None
    resolved_ago: int | None = None
    """In minutes, for a conversation that is over."""
    score: int | None = None
    comment: str | None = None


def build_conversations() -> Sequence[DemoConversation]:
    return [*RESOLVED, *ANSWERED, *WAITING]


WAITING = (
    DemoConversation(
        Source.MSGAPP_CLOUD,
        [
            DemoLine(95, "customer", "Pagi kak, paket kopi saya sampai tapi kemasannya sobek 😢"),
            DemoLine(90, "Sari", "Pagi kak, mohon maaf ya 🙏 Boleh kirim foto kemasan dan labelnya?"),
            DemoLine(84, "note", "Sudah yang kedua minggu ini dari kiriman yang sama. Ganti baru saja."),
            DemoLine(71, "customer", "Sudah saya kirim lewat email kak, soalnya HP saya penuh."),
            DemoLine(69, "customer", "Kalau diganti, bisa sampai sebelum Jumat?"),
        ],
        customer=1,
        label="Keluhan",
        priority="urgent",
    ),
    DemoConversation(
        Source.PHOTO_SOCIAL,
        [DemoLine(48, "customer", "Kak, resinya kok belum bisa dilacak ya dari tadi pagi?")],
        name="Rizky Pratama",
        id="sim_rizky",
    ),
    DemoConversation(
        Source.MAIL,
        [
            DemoLine(
                37,
                "customer",
                "Selamat siang,\n\nKantor kami butuh 50 bungkus Kopi Gayo 250 g untuk akhir bulan. Berapa harga "
                "grosirnya, dan apakah bisa dengan faktur pajak?\n\nTerima kasih.",
            )
        ],
        customer=2,
        subject="Harga grosir 50 bungkus",
        label="Grosir",
    ),
    DemoConversation(
        Source.MSGAPP_CLOUD,
        [
            DemoLine(33, "customer", "Hi, do you ship to Singapore? I'd like two bags of the Toraja."),
            DemoLine(26, "customer", "And is it roasted this week?"),
        ],
        customer=3,
    ),
    DemoConversation(
        Source.WIDGET,
        [DemoLine(12, "customer", "Halo, gratis ongkir ke Makassar minimal belanja berapa?")],
        name="Fajar Nugroho",
        id="sim_fajar",
        stated_contact="fajar.nugroho@example.com",
    ),
    DemoConversation(
        Source.MSGAPP_CLOUD,
        [
            DemoLine(9, "customer", "Selamat siang, saya mau tukar ukuran tumblernya. Masih bisa?"),
            DemoLine(8, "Asisten", "Bisa, kak, selama belum dipakai. Saya teruskan ke tim kami, ya."),
            DemoLine(6, "customer", "Belum dipakai kok, masih di kardus."),
        ],
        customer=4,
        label="Retur",
    ),
    DemoConversation(
        Source.SOCIAL_NETWORK,
        [DemoLine(3, "customer", "Apakah toko buka hari Minggu?")],
        name="Putri Maharani",
        id="sim_putri",
    ),
)

ANSWERED = (
    DemoConversation(
        Source.MSGAPP_CLOUD,
        [
            DemoLine(160, "customer", "Kak, pesanan saya yang kemarin dikirim hari ini?"),
            DemoLine(152, "Sari", "Iya kak, sore ini diambil kurir. Resinya menyusul di sini ya."),
            DemoLine(150, "customer", "Baik kak, terima kasih banyak 🙏"),
            DemoLine(149, "Sari", "Sama-sama, kak!"),
        ],
        customer=5,
    ),
    DemoConversation(
        Source.MAIL,
        [
            DemoLine(
                6 * 60,
                "customer",
                "Hello,\n\nOne of the three mugs arrived with a crack. Could you send another one or refund it?\n\n"
                "Kind regards",
            ),
            DemoLine(
                5 * 60,
                "Budi",
                "Hello,\n\nWe are sorry about that. A new mug leaves tomorrow morning, and you keep the other one.\n\n"
                "Best,\nBudi",
            ),
            DemoLine(5 * 60 - 5, "note", "Bilang ke gudang: mug pakai dua lapis kertas gelembung."),
        ],
        customer=6,
        subject="A cracked mug",
        label="Keluhan",
    ),
    DemoConversation(
        Source.WIDGET,
        [
            DemoLine(4 * 60, "customer", "Ada kelas seduh manual bulan ini?"),
            DemoLine(4 * 60 - 4, "Budi", "Ada kak, Sabtu minggu depan. Saya kabari kalau pendaftarannya dibuka."),
        ],
        name="Nur Aini",
        id="sim_nur_aini",
        snoozed_hours=20,
    ),
    DemoConversation(
        Source.MSGAPP_CLOUD,
        [
            DemoLine(7 * 60, "customer", "Stok Kintamani 1 kg kapan ada lagi?"),
            DemoLine(7 * 60 - 12, "Sari", "Panen berikutnya Kamis, kak. Mau saya simpankan satu?"),
            DemoLine(7 * 60 - 20, "customer", "Mau kak!"),
            DemoLine(7 * 60 - 22, "Sari", "Siap, saya hubungi lagi Kamis ya."),
        ],
        customer=7,
        snoozed_hours=44,
    ),
)

RESOLVED = (
    DemoConversation(
        Source.MSGAPP_CLOUD,
        [
            DemoLine(2 * DAY + 200, "customer", "Alamat saya pindah, pesanan masih bisa diganti alamatnya?"),
            DemoLine(2 * DAY + 193, "Sari", "Bisa kak, belum dikirim. Boleh tulis alamat barunya?"),
            DemoLine(2 * DAY + 188, "customer", "Jl. Kartini No. 12, Semarang 50132."),
            DemoLine(2 * DAY + 184, "Sari", "Sudah kami ganti, kak. Ada lagi yang bisa dibantu?"),
            DemoLine(2 * DAY + 180, "customer", "Cukup, cepat sekali jawabnya. Makasih!"),
        ],
        customer=8,
        resolved_ago=2 * DAY + 175,
        score=5,
        comment="Cepat dan ramah.",
    ),
    DemoConversation(
        Source.MSGAPP_CLOUD,
        [
            DemoLine(DAY + 400, "customer", "Bisa bayar di tempat?"),
            DemoLine(DAY + 399, "Asisten", "Bisa, kak, untuk semua kota yang dilayani kurir kami."),
            DemoLine(DAY + 395, "customer", "Oke, saya pesan ya."),
        ],
        customer=9,
        resolved_ago=DAY + 390,
        score=4,
    ),
    DemoConversation(
        Source.PHOTO_SOCIAL,
        [
            DemoLine(DAY + 300, "customer", "Warna mug yang biru masih ada?"),
            DemoLine(DAY + 240, "Budi", "Maaf baru balas, kak. Yang biru habis, tinggal hijau dan krem."),
            DemoLine(DAY + 236, "customer", "Yah, ya sudah kak."),
        ],
        name="Made Suartini",
        id="sim_made",
        resolved_ago=DAY + 230,
        score=3,
        comment="Jawabannya agak lama.",
    ),
    DemoConversation(
        Source.MAIL,
        [
            DemoLine(3 * DAY + 90, "customer", "Mohon dikirim ulang faktur pesanan bulan lalu."),
            DemoLine(3 * DAY + 40, "Sari", "Terlampir fakturnya. Kalau ada yang perlu diperbaiki, kabari kami ya."),
        ],
        customer=10,
        subject="Faktur bulan lalu",
        resolved_ago=3 * DAY + 38,
        score=5,
    ),
    DemoConversation(
        Source.MSGAPP_CLOUD,
        [
            DemoLine(DAY + 130, "customer", "Saya belum terima paketnya, sudah lima hari."),
            DemoLine(DAY + 118, "Budi", "Mohon maaf, kak. Kurir salah sortir; kami kirim pengganti hari ini."),
            DemoLine(DAY + 110, "customer", "Semoga cepat sampai."),
            DemoLine(DAY + 60, "Budi", "Sudah diambil kurir, kak. Resinya kami kirim sebentar lagi."),
        ],
        customer=11,
        label="Keluhan",
        resolved_ago=DAY + 50,
        score=2,
        comment="Akhirnya sampai, tapi terlalu lama.",
    ),
)
