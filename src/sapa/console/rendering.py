"""Renders pages as HTML, with the headers that restrict what a browser may do."""

import re
from collections.abc import Mapping, MutableMapping
from decimal import Decimal
from functools import cache, lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context
from markupsafe import Markup, escape
from starlette.responses import Response

from sapa.console.badges import build_badge
from sapa.console.error_words import build_error_page, name_code, name_column, show_cause, show_error
from sapa.console.formats import Formats
from sapa.console.json_text import build_curl, colour_json, indent_json
from sapa.console.menu import MENU, MenuCount, name_section
from sapa.console.translations import LANGUAGES, build_translator
from sapa.people.types import Role
from sapa.values.json import encode
from sapa.values.money import DIGITS

HERE = Path(__file__).parent
POLICY = "; ".join(
    [
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self' data:",
        "media-src 'self'",
        "connect-src 'self'",
        "font-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
ASSET_VERSION = sha256(b"".join(file.read_bytes() for file in sorted((HERE / "static").iterdir()))).hexdigest()[:12]
"""In the addresses of static files, which browsers keep."""
_SPECIAL = re.compile("[&<>\"']")
STRICT_TRANSPORT = {"strict-transport-security": "max-age=31536000"}


class TemplateContext(Context):
    """Calls functions as they are. Jinja first looks whether each one wants its context, and none of ours does: that
    takes longer than most of the thousand calls of a page."""

    def call(self, function: Any, *args: Any, _loop_vars: Any = None, _block_vars: Any = None, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


class TemplateCode(CodeGenerator):
    """Escapes what templates write with `escape_text`."""

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        self.write("environment.escape_text(")


def escape_text(value: Any) -> str:
    """As `escape`, without making a Markup of each of the thousand values of a page, which are joined at once."""
    kind = type(value)
    if kind is Markup or (kind is str and _SPECIAL.search(value) is None):
        return value  # type: ignore[no-any-return]
    return escape(value)


class Templates(Environment):
    """Looks keys up before attributes: pages show mostly dicts, and it is twice as fast."""

    code_generator_class = TemplateCode
    context_class = TemplateContext
    escape_text = staticmethod(escape_text)

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is dict and attribute in obj:
            return obj[attribute]
        try:
            return getattr(obj, attribute)
        except AttributeError:
            return super().getattr(obj, attribute)

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The same for all templates: a plain dict is copied sooner than a chain of them."""
        return self.globals


_templates = Templates(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)


def render(
    template: str, status: int, language: str, context: dict[str, Any], formats: Formats | None = None
) -> Response:
    formats = formats or Formats(language)
    page = _templates.get_template(template).render(
        {
            "language": language,
            "languages": LANGUAGES,
            "t": build_translator(language),
            "moment": formats.instant,
            "at": formats.at,
            "stamp": formats.stamp,
            "show_day": formats.day_of,
            "ago": formats.ago,
            "number": formats.number,
            "phone": formats.phone,
            "show_estimate": formats.estimate,
            "show_amount": formats.money,
            "amount": formats.money,
            "short_amount": formats.short_money,
            "person": show_person,
            "badge": partial(build_badge, language),
            "show_reason": partial(show_error, language),
            "show_cause": partial(show_cause, language),
            "name_code": partial(name_code, language),
            "name_column": partial(name_column, language),
            "version": ASSET_VERSION,
            **context,
            "error": build_error_page(language, context.get("error"), context.get("error_currency")),
        }
    )
    return Response(page, status, HEADERS, "text/html")


def draw_menu(
    template: str,
    language: str,
    role: Role,
    environment: str | None,
    here: str,
    counts: Mapping[str, MenuCount],
) -> Markup:
    """The same on many pages."""
    return _draw_menu(template, language, role, environment, name_section(here), tuple(counts.items()))


@lru_cache(maxsize=1_000)
def _draw_menu(
    template: str,
    language: str,
    role: Role,
    environment: str | None,
    section: str,
    counts: tuple[tuple[str, MenuCount], ...],
) -> Markup:
    drawn = _templates.get_template(template).render(
        menu=MENU,
        role=role,
        environment=environment,
        here=section,
        counts=dict(counts),
        t=build_translator(language),
        number=Formats(language).number,
    )
    return Markup(drawn)  # noqa: S704 - escaped


def protect(response: Response, is_secure: bool) -> Response:
    """Adds the security headers to every response."""
    for name, value in (HEADERS | (STRICT_TRANSPORT if is_secure else {})).items():
        response.headers.setdefault(name, value)
    return response


def show_person(who: Mapping[str, Any]) -> str:
    """The name, else the email, else the phone number."""
    name = " ".join(filter(None, (who["firstName"], who["lastName"])))
    return name or who["email"] or who["phoneNumber"] or "–"


@cache
def draw_icon(name: str) -> Markup:
    """Hundreds of them are on a page."""
    place = f"/console/static/icons.svg?v={ASSET_VERSION}#{name}"
    return Markup(f'<svg class="icon" aria-hidden="true"><use href="{place}"/></svg>')  # noqa: S704 - a name of ours


def build_initials(name: str) -> str:
    return "".join(word[0].upper() for word in str(name).split()[:2])


@lru_cache(maxsize=10_000)
def draw_face(name: str, source: str = "", icon: str = "", size: str = "") -> Markup:
    """A person's initials in one of six colours, and the channel's icon. Every row of the inbox has one."""
    initials = "#" if name[:1] in "+0123456789" else escape(build_initials(name))
    via = f'<span class="via via-{escape(source)}">{draw_icon(icon)}</span>' if source else ""
    hue = sum(name.encode()) % 6 + 1
    face = f'<span class="avatar hue-{hue} {escape(size)}" aria-hidden="true">{initials}{via}</span>'
    return Markup(face)  # noqa: S704 - escaped


def build_query(query: Mapping[str, object]) -> str:
    """For an address: without what is empty."""
    return _encode_query(tuple((name, value) for name, value in query.items() if value not in ("", None)))


@lru_cache(maxsize=1_000)
def _encode_query(pairs: tuple[tuple[str, object], ...]) -> str:
    """The tabs of a list have the same on every page."""
    return urlencode(pairs)


def show_json(value: object, indent: int = 0) -> str:
    """As text, which the template escapes."""
    return msgspec.json.format(encode(value), indent=indent).decode()


def sum_amounts(*amounts: int | float) -> Decimal:
    """Exact: numbers of the API are decimals."""
    return sum((Decimal(str(amount)) for amount in amounts), Decimal(0))


_templates.filters["query"] = build_query
_templates.globals |= {
    "show_person": show_person,
    "icon": draw_icon,
    "draw_menu": draw_menu,
    "draw_face": draw_face,
    "initials": build_initials,
    "show_json": show_json,
    "count_digits": DIGITS.__getitem__,
    "sum_amounts": sum_amounts,
    "build_curl": build_curl,
    "colour_json": colour_json,
    "indent_json": indent_json,
}
