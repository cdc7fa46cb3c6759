"""Pages as HTML: templates, what every page knows, and headers that let a browser do nothing else."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response

from sapa import __version__
from sapa.console.words import LANGUAGES, translate

HERE = Path(__file__).parent
POLICY = "; ".join(
    [
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
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
STRICT_TRANSPORT = {"strict-transport-security": "max-age=31536000"}

_templates = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, status: int, language: str, is_secure: bool, context: dict[str, Any]) -> Response:
    page = _templates.get_template(template).render(
        {
            "language": language,
            "languages": LANGUAGES,
            "t": partial(translate, language),
            "moment": show_moment,
            "ago": partial(show_ago, language),
            "version": __version__,
            **context,
        }
    )
    return Response(page, status, HEADERS | (STRICT_TRANSPORT if is_secure else {}), "text/html")


def show_moment(text: str | None) -> str:
    """An instant as people read it, in UTC."""
    return "–" if text is None else f"{text[:10]} {text[11:16]} UTC"


def show_ago(language: str, text: str | None) -> str:
    """How long ago an instant was, roughly."""
    if text is None:
        return translate(language, "never")
    seconds = (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
    for size, unit in ((86400, "{n} d ago"), (3600, "{n} h ago"), (60, "{n} min ago")):
        if seconds >= size:
            return translate(language, unit, n=int(seconds // size))
    return translate(language, "just now")
