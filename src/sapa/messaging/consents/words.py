"""The words by which people unsubscribe and subscribe again, and what they get in return. Pure: no database."""

import unicodedata
from collections.abc import Mapping, Sequence

from sapa.messaging.consents.types import ConsentSettings, ConsentStatus

STOP_WORDS = ("STOP", "UNSUBSCRIBE", "BERHENTI", "STOP PROMO", "BATAL LANGGANAN")
START_WORDS = ("START",)
LONGEST_WORD = 50

REPLIES: Mapping[str, Mapping[ConsentStatus, str]] = {
    "id": {
        "unsubscribe": "Anda tidak akan menerima pesan promosi lagi. Balas START untuk berlangganan kembali.",
        "subscribe": "Anda akan menerima pesan promosi lagi. Balas STOP untuk berhenti.",
    },
    "en": {
        "unsubscribe": "You will get no more promotional messages. Reply START to get them again.",
        "subscribe": "You will get promotional messages again. Reply STOP to end them.",
    },
}
"""By the company's language."""

_IGNORED = frozenset("PSZC")
"""Unicode categories: punctuation, symbols such as emoji, separators, control characters."""


def normalise(text: str) -> str:
    """In one case and form, without punctuation; words are separated by one space."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain = "".join(" " if unicodedata.category(char)[0] in _IGNORED else char for char in folded)
    return " ".join("".join(char for char in plain if unicodedata.category(char) != "Mn").split())


def find_choice(message: str, settings: ConsentSettings) -> ConsentStatus | None:
    """What the message as a whole asks for; None for any other message."""
    word = normalise(message)
    if word in _normalise_all(STOP_WORDS) | _normalise_all(settings.stop_words):
        return "unsubscribe"
    if word in _normalise_all(START_WORDS) | _normalise_all(settings.start_words):
        return "subscribe"
    return None


def build_reply(status: ConsentStatus, settings: ConsentSettings, language: str) -> str:
    own = settings.stop_reply if status == "unsubscribe" else settings.start_reply
    return own or REPLIES["en" if language == "en" else "id"][status]


def _normalise_all(words: Sequence[str]) -> set[str]:
    return set(map(normalise, words)) - {""}
