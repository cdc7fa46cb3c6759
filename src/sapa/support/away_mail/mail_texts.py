"""The mail about what waits, in both languages."""

from collections.abc import Mapping

from msgspec import Struct


class WaitingText(Struct, frozen=True):
    subject: str
    lines: Mapping[str, tuple[str, str]]
    """A line for each kind of alert, and the page that it leads to."""
    body: str


TEXTS = {
    "en": WaitingText(
        subject="{organisation}: {count} waiting for you",
        lines={
            "assigned": ("{n} customers wait for an answer in your conversations", "/inbox"),
            "unassigned": ("{n} customers wait in conversations that nobody has taken", "/inbox?view=unassigned"),
            "mentioned": ("{n} conversations mention you", "/inbox"),
            "order": ("{n} orders were paid and wait to be shipped", "/orders?status=active&financialStatus=paid"),
            "shipment": ("{n} parcels need somebody", "/shipments?needsAction=true"),
        },
        body="""\
Hello {name},

this happened at {organisation} while you were away:

{lines}

Choose what you hear of: {settings}
""",
    ),
    "id": WaitingText(
        subject="{organisation}: {count} menunggu Anda",
        lines={
            "assigned": ("{n} pelanggan menunggu balasan di percakapan Anda", "/inbox"),
            "unassigned": ("{n} pelanggan menunggu di percakapan yang belum ditangani", "/inbox?view=unassigned"),
            "mentioned": ("Anda disebut di {n} percakapan", "/inbox"),
            "order": ("{n} pesanan sudah dibayar dan menunggu dikirim", "/orders?status=active&financialStatus=paid"),
            "shipment": ("{n} paket butuh tindakan", "/shipments?needsAction=true"),
        },
        body="""\
Halo {name},

ini yang terjadi di {organisation} selagi Anda pergi:

{lines}

Pilih kabar yang Anda terima: {settings}
""",
    ),
}
