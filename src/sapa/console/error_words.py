"""Errors in the reader's words: by their code, and at the field that they are about."""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache, lru_cache
from string import Formatter

from markupsafe import Markup, escape
from msgspec import Struct, field

from sapa.console.formats import Formats
from sapa.console.translations import build_translator, read_error_words, read_translations, translate_error
from sapa.http.errors import ApiError, Invalid

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"\d+(\.\d+)?")
EMPTY = {
    "is required",
    "must be a string, not null",
    "must have at least 1 characters",
    "must have at least 1 items",
    "must not be blank",
    "must not be blank or contain a NUL character",
    "must not be empty",
}
"""What the API says about a field that was left empty."""
QUOTED = ("reason", "advice")
"""Names in messages for what a carrier, a channel or a library said in English."""
WORDS = (
    "carrier",
    "channel",
    "day",
    "hint",
    "kind",
    "label",
    "method",
    "name",
    "resource",
    "source",
    "status",
    "wanted",
)
"""Names for what has words of its own."""
AMOUNTS = ("amount", "cost", "outstanding", "refundable", "removed")
"""Names for money."""
NUMBERS = ("cell", "id", "number", "reference")
"""Names for numbers that nobody counts."""
LONGEST_MESSAGE = 500
"""Of a message that is compared with those that have names."""


class FieldProblem(Struct, frozen=True):
    field: str
    message: Markup
    label: str
    """The field's words, for problems that are not shown at it."""


class ErrorPage(Struct):
    """An error as a page shows it: what is said at a field is not repeated on top."""

    status: int
    message: Markup
    details: list[FieldProblem]
    shown: set[str] = field(default_factory=set)

    def at(self, name: str) -> list[FieldProblem]:
        """The problems of a field, which is there to show them."""
        self.shown.add(name)
        return [problem for problem in self.details if problem.field == name]

    def within(self, name: str) -> list[FieldProblem]:
        """The problems of a field and of its parts."""
        names = {
            one.field for one in self.details if one.field == name or one.field.startswith((f"{name}.", f"{name}["))
        }
        return [problem for one in sorted(names) for problem in self.at(one)]

    @property
    def elsewhere(self) -> list[FieldProblem]:
        """The problems that no field of the page shows. The page's own part is rendered before."""
        return [problem for problem in self.details if problem.field not in self.shown]


def build_error_page(language: str, error: ApiError | None, currency: str | None = None) -> ErrorPage | None:
    """The currency is that of the amounts in the messages, if the page has one."""
    if error is None:
        return None
    general, say = _say(language, error, currency), build_translator(language)
    details = [
        FieldProblem(
            one.field,
            general if one.message == error.message else show_problem(language, one.field, one.message, currency),
            name_field(language, one.field),
        )
        for one in error.details or []
    ]
    if details and (isinstance(error, Invalid) or any(one.message is general for one in details)):
        general = escape(say("Check the marked fields.") if len(details) > 1 else say("Check the marked field."))
    return ErrorPage(error.status, general, details)


def _say(language: str, error: ApiError, currency: str | None) -> Markup:
    """By what the message says, if it is about this one request, else by the error's class or code."""
    is_specific = error.message != error.summary()
    if is_specific and (translated := translate_message(language, error.message, currency)) is not None:
        return translated
    words = read_error_words(language)
    general = words.get(f"error {type(error).__name__}") or words.get(f"error {error.code}")
    if general is None or (is_specific and language == "en"):
        return show_error(language, error.message)
    shown = escape(general.replace("#", error.headers.get("Retry-After", "60")))
    return shown + Markup(" ") + show_error(language, error.message) if is_specific else shown


def show_problem(language: str, name: str, message: str, currency: str | None) -> Markup:
    """An empty field asks for its input."""
    if message in EMPTY:
        return escape(build_translator(language)("Enter {field}", field=name_field(language, name)))
    return show_error(language, message, currency)


def name_field(language: str, name: str) -> str:
    """The field's words, else its name as words."""
    last = re.sub(r"\[\d+\]", "", name).rpartition(".")[2]
    named = read_error_words(language).get(f"field {last}")
    return named or _CAMEL.sub(" ", last).lower().removesuffix(" id")


def name_column(language: str, path: str) -> str:
    """The words of a field of a file, else those of the last step to it, else that step."""
    steps = [step for step in path.split(".") if not step.isdigit()]
    words = read_translations(language)
    return words.get(f"column {'.'.join(steps)}") or words.get(f"column {steps[-1]}") or steps[-1]


def name_code(language: str, kind: str, code: str) -> str:
    """What a channel calls a warning or a price, by its kind. A code that is not known is written as words."""
    return read_translations(language).get(f"{kind} {code}") or code.replace("_", " ")


def show_error(language: str, text: str, currency: str | None = None) -> Markup:
    """An untranslated error is shown in English and marked as such."""
    translated = translate_message(language, text, currency)
    if translated is None:
        return escape(text) if language == "en" else _mark_english(text)
    return translated


def show_cause(language: str, kind: str, text: str, *, is_own: bool = False) -> Markup:
    """What went wrong, in the words for its kind; what a channel or carrier said about it follows. A sentence of our
    own is replaced by these words."""
    words = read_error_words(language).get(kind)
    if words is None or translate_message(language, text) is not None:
        return show_error(language, text)
    return escape(words) if is_own else escape(words) + Markup(" ") + show_error(language, text)


@lru_cache(maxsize=1_000)
def translate_message(language: str, text: str, currency: str | None = None) -> Markup | None:
    """A message of the API in the reader's words; None if there are none. In English it may be good as it is."""
    if (translated := translate_error(language, text)) is not None:
        return escape(translated)
    for pattern, words in _list_patterns(language) if len(text) <= LONGEST_MESSAGE else ():
        if (found := pattern.fullmatch(text)) is not None:
            values = _show_values(language, found.groupdict(), currency)
            return Markup(escape(words)).format(**values)  # noqa: S704 - escaped
    if language == "en" and translate_message("id", text) is not None:
        return escape(text)
    return None


@cache
def _list_patterns(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Messages with {names}: the longest first, which says most."""
    messages = [text for text in read_error_words(language) if "{" in text]
    return [
        (_build_pattern(text), read_error_words(language)[text]) for text in sorted(messages, key=len, reverse=True)
    ]


def _build_pattern(text: str) -> re.Pattern[str]:
    parts = (
        re.escape(literal) + (f"(?P<{name}>.+?)" if name else "") for literal, name, _, _ in Formatter().parse(text)
    )
    return re.compile("".join(parts), re.DOTALL)


def _show_values(language: str, values: Mapping[str, str], currency: str | None) -> dict[str, str]:
    """Numbers and money as the reader writes them, states in words, and what others said as they said it."""
    return {name: _show_value(language, name, value, currency) for name, value in values.items()}


def _show_value(language: str, name: str, value: str, currency: str | None) -> str:
    if name in QUOTED and language != "en":
        return _mark_english(value)
    if name == "failure":
        return show_error(language, value)
    if name == "fields":
        return f" {build_translator(language)('or')} ".join(name_field(language, one) for one in value.split(" or "))
    if value[:1] == value[-1:] == "'":
        return value[1:-1]
    if currency and name in AMOUNTS and _NUMBER.fullmatch(value):
        return Formats(language).money(Decimal(value), currency)
    if _NUMBER.fullmatch(value) and name not in NUMBERS:
        return Formats(language).number(value)
    return read_translations(language).get(value, value) if name in WORDS else value


def _mark_english(text: str) -> Markup:
    return Markup('<span lang="en">{}</span>').format(text)
