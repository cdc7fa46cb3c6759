"""The console's languages. English is in the templates; the files have Bahasa Indonesia, and plain English for the
API's codes."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
from markupsafe import Markup, escape
from starlette.requests import Request

LANGUAGES = {"en": "English", "id": "Bahasa Indonesia"}
_FOLDER = Path(__file__).parent / "words"
_NUMBER = re.compile(r"\d[\d,.]*(?<![,.])")


@cache
def read_translations(language: str) -> dict[str, str]:
    return _read(f"{language}.json")


@cache
def read_error_words(language: str) -> dict[str, str]:
    """The words of errors by code or class, those of fields, and messages of the API, with {names} for what differs."""
    return _read(f"errors.{language}.json")


def _read(name: str) -> dict[str, str]:
    file = _FOLDER / name
    return msgspec.json.decode(file.read_bytes(), type=dict[str, str]) if file.exists() else {}


@cache
def build_translator(language: str) -> Callable[..., str]:
    """Translates texts and fills in their {names}; an untranslated text stays as it is. A text that begins with "one "
    in the files stands in where {n} is 1."""
    translations = read_translations(language)

    def say(text: str, **values: object) -> str:
        translated = translations.get(text, text)
        if not values:
            return translated
        if str(values.get("n")) == "1":
            translated = translations.get(f"one {text}", translated)
        if Markup not in map(type, values.values()):
            return translated.format(**values)
        escaped = {name: escape(value) for name, value in values.items()}
        return Markup(str(escape(translated)).format(**escaped))  # noqa: S704 - escaped

    return say


def translate(language: str, text: str, **values: object) -> str:
    return build_translator(language)(text, **values)


def translate_error(language: str, text: str) -> str | None:
    """Translates an error's message, with # for its numbers; None if it is not translated."""
    numbered = _NUMBER.sub("#", text)
    found = (
        words.get(text) or words.get(numbered) for words in (read_translations(language), read_error_words(language))
    )
    translated = next(filter(None, found), None)
    numbers = iter(_NUMBER.findall(text))
    return translated and re.sub("#", lambda _: next(numbers, "#"), translated)


def choose(request: Request) -> str:
    """For visitors who are not signed in: their earlier choice, else the browser's first language."""
    chosen = request.cookies.get("sapa_language")
    if chosen in LANGUAGES:
        return str(chosen)
    accepted = request.headers.get("accept-language", "").lower()
    return "id" if accepted.startswith("id") else "en"
