"""The text of authentication templates. The channel writes it; ours is shown until the channel's own is known."""

from collections.abc import Mapping

from msgspec import Struct

from sapa.messaging.channels.template_content import Authentication


class AuthenticationText(Struct, frozen=True):
    body: str
    advice: str
    footer: str


_ENGLISH = AuthenticationText(
    "{{1}} is your verification code.",
    "For your security, do not share this code.",
    "This code expires in {minutes} minutes.",
)
_TEXTS: Mapping[str, AuthenticationText] = {
    "en": _ENGLISH,
    "id": AuthenticationText(
        "{{1}} adalah kode verifikasi Anda.",
        "Demi keamanan Anda, jangan bagikan kode ini.",
        "Kode ini akan kedaluwarsa dalam {minutes} menit.",
    ),
}


def build_text(language: str, authentication: Authentication) -> tuple[str, str | None]:
    """The body and the footer, in English for a language that we have no text in."""
    words = _TEXTS.get(language.partition("_")[0], _ENGLISH)
    minutes = authentication.code_expiration_minutes
    body = f"{words.body} {words.advice}" if authentication.security_recommendation else words.body
    return body, words.footer.format(minutes=minutes) if minutes else None
