"""The console's languages. English is written in the templates; here is what it says in Bahasa Indonesia, and in plain
English what the API has a code for."""

from functools import cache
from pathlib import Path

import msgspec
from starlette.requests import Request

LANGUAGES = {"en": "English", "id": "Bahasa Indonesia"}
_FOLDER = Path(__file__).parent / "words"


@cache
def read_words(language: str) -> dict[str, str]:
    file = _FOLDER / f"{language}.json"
    return msgspec.json.decode(file.read_bytes(), type=dict[str, str]) if file.exists() else {}


def translate(language: str, text: str, **values: object) -> str:
    """The text in a language, with its {names} filled in; as it is where nobody translated it."""
    said = read_words(language).get(text, text)
    return said.format(**values) if values else said


def choose(request: Request) -> str:
    """Of somebody who is not known: what they chose before, else what their browser asks for first."""
    chosen = request.cookies.get("sapa_language")
    if chosen in LANGUAGES:
        return str(chosen)
    wanted = request.headers.get("accept-language", "").lower()
    return "id" if wanted.startswith("id") else "en"
