"""The mail about waiting customers, in both languages."""

from msgspec import Struct


class WaitingText(Struct, frozen=True):
    subject: str
    body: str


TEXTS = {
    "en": WaitingText(
        subject="{organisation}: {count} waiting for an answer",
        body="""\
Hello {name},

while you were away, customers of {organisation} wrote: {assigned} in your conversations,
{unassigned} in conversations that nobody has taken.

{link}

Choose what you hear of: {settings}
""",
    ),
    "id": WaitingText(
        subject="{organisation}: {count} menunggu balasan",
        body="""\
Halo {name},

selagi Anda pergi, pelanggan {organisation} menulis: {assigned} di percakapan Anda,
{unassigned} di percakapan yang belum ditangani.

{link}

Pilih kabar yang Anda terima: {settings}
""",
    ),
}
