"""The mail about what waits, in both languages."""

from collections.abc import Mapping

from msgspec import Struct

INBOX = "/inbox"
UNASSIGNED = "/inbox?view=unassigned"
TO_SHIP = "/orders?status=active&financialStatus=paid"
STUCK = "/shipments?needsAction=true"


class WaitingLine(Struct, frozen=True):
    """What waits, for one and for several, and the page that it leads to."""

    one: str
    several: str
    path: str


class WaitingText(Struct, frozen=True):
    subject: str
    lines: Mapping[str, WaitingLine]
    """For each kind of alert."""
    body: str


TEXTS = {
    "en": WaitingText(
        subject="{organisation}: {count} waiting for you",
        lines={
            "assigned": WaitingLine(
                "1 customer waits for an answer in your conversations",
                "{n} customers wait for an answer in your conversations",
                INBOX,
            ),
            "unassigned": WaitingLine(
                "1 customer waits in a conversation that nobody has taken",
                "{n} customers wait in conversations that nobody has taken",
                UNASSIGNED,
            ),
            "mentioned": WaitingLine("1 conversation mentions you", "{n} conversations mention you", INBOX),
            "order": WaitingLine(
                "1 order was paid and waits to be shipped", "{n} orders were paid and wait to be shipped", TO_SHIP
            ),
            "shipment": WaitingLine("1 parcel needs you", "{n} parcels need you", STUCK),
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
            kind: WaitingLine(line, line, path)
            for kind, line, path in (
                ("assigned", "{n} pelanggan menunggu balasan di percakapan Anda", INBOX),
                ("unassigned", "{n} pelanggan menunggu di percakapan yang belum ditangani", UNASSIGNED),
                ("mentioned", "Anda disebut di {n} percakapan", INBOX),
                ("order", "{n} pesanan sudah dibayar dan menunggu dikirim", TO_SHIP),
                ("shipment", "{n} paket butuh tindakan", STUCK),
            )
        },
        body="""\
Halo {name},

ini yang terjadi di {organisation} selagi Anda pergi:

{lines}

Pilih kabar yang Anda terima: {settings}
""",
    ),
}
