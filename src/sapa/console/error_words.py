"""Errors in the reader's words: by their code, and at the field that they are about."""

import re

from markupsafe import Markup, escape
from msgspec import Struct, field

from sapa.console.translations import build_translator, read_translations, translate_error
from sapa.http.errors import ApiError, Invalid, NotFound

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
REQUIRED = "is required"


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

    @property
    def elsewhere(self) -> list[FieldProblem]:
        """The problems that no field of the page shows. The page's own part is rendered before."""
        return [problem for problem in self.details if problem.field not in self.shown]


def build_error_page(language: str, error: ApiError | None) -> ErrorPage | None:
    if error is None:
        return None
    details = [
        FieldProblem(one.field, show_problem(language, one.field, one.message), name_field(language, one.field))
        for one in error.details or []
    ]
    return ErrorPage(error.status, _say(language, error, details), details)


def _say(language: str, error: ApiError, details: list[FieldProblem]) -> Markup:
    say = build_translator(language)
    is_about_fields = isinstance(error, Invalid) and bool(details)
    if is_about_fields:
        return escape(say("Check the marked fields.") if len(details) > 1 else say("Check the marked field."))
    by_code = read_translations(language).get(f"error {error.code}")
    is_specific = isinstance(error, NotFound) and error.message != error.summary()
    if by_code is None or is_specific:
        return show_error(language, error.message)
    return escape(by_code.replace("#", error.headers.get("Retry-After", "60")))


def show_problem(language: str, name: str, message: str) -> Markup:
    """An empty field asks for its input."""
    if message == REQUIRED:
        return escape(build_translator(language)("Enter {field}", field=name_field(language, name)))
    return show_error(language, message)


def name_field(language: str, name: str) -> str:
    """The field's words, else its name as words."""
    last = re.sub(r"\[\d+\]", "", name).rpartition(".")[2]
    named = read_translations(language).get(f"field {last}")
    return named or _CAMEL.sub(" ", last).lower().removesuffix(" id")


def show_error(language: str, text: str) -> Markup:
    """An untranslated error is shown in English and marked as such."""
    translated = translate_error(language, text)
    if translated is not None or language == "en":
        return escape(translated or text)
    return Markup('<span lang="en">{}</span>').format(text)
