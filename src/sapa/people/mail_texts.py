"""The texts of mails, in both languages."""

from msgspec import Struct

from sapa.people.types import Purpose


class MailText(Struct, frozen=True):
    subject: str
    body: str


TEXTS = {
    ("en", Purpose.INVITATION): MailText(
        "Your invitation to {organisation}",
        """\
Hello {name},

you have been invited to the console of {organisation}. Choose a password here:

{link}

The link works once, for a week. If you do not know {organisation}, ignore this mail.
""",
    ),
    ("id", Purpose.INVITATION): MailText(
        "Undangan Anda ke {organisation}",
        """\
Halo {name},

Anda diundang ke konsol {organisation}. Pilih kata sandi di sini:

{link}

Tautan ini berlaku sekali, selama seminggu. Jika Anda tidak mengenal {organisation}, abaikan saja.
""",
    ),
    ("en", Purpose.RESET): MailText(
        "A new password for {organisation}",
        """\
Hello {name},

someone requested a new password for your account at {organisation}. Choose it here:

{link}

The link works once, for an hour. If it was not you, ignore this mail: your password does not change.
""",
    ),
    ("id", Purpose.RESET): MailText(
        "Kata sandi baru untuk {organisation}",
        """\
Halo {name},

ada yang meminta kata sandi baru untuk akun Anda di {organisation}. Pilih di sini:

{link}

Tautan ini berlaku sekali, selama satu jam. Jika bukan Anda, abaikan saja: kata sandi Anda tetap sama.
""",
    ),
}
