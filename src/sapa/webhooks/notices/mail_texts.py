"""The mail about a suspended endpoint, in both languages."""

from msgspec import Struct


class SuspensionText(Struct, frozen=True):
    subject: str
    body: str
    resumes: str
    """What happens next when the endpoint resumes by itself."""
    waits: str
    """What to do when it does not."""


TEXTS = {
    "en": SuspensionText(
        subject="{organisation}: webhook suspended",
        body="""\
Hello {name},

the webhook to {origin} ({environment}) of {organisation} was suspended.

{reason}

{next}

{link}
""",
        resumes="Nothing is lost. It is probed for three days and resumes by itself once the receiver works again.",
        waits="Nothing is lost. Fix the receiver, then resume the webhook in the console.",
    ),
    "id": SuspensionText(
        subject="{organisation}: webhook ditangguhkan",
        body="""\
Halo {name},

webhook ke {origin} ({environment}) milik {organisation} ditangguhkan.

{reason}

{next}

{link}
""",
        resumes="Tidak ada yang hilang. Webhook dicoba selama tiga hari dan lanjut sendiri setelah penerimanya pulih.",
        waits="Tidak ada yang hilang. Perbaiki penerimanya, lalu lanjutkan webhook di konsol.",
    ),
}
