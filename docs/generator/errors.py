"""`python -m docs.generator.errors` writes docs/errors.md, the catalogue of errors, from the error classes."""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import sapa
from docs.generator.pages import ROOT
from sapa.domains import ROUTES
from sapa.http.endpoints import Endpoint
from sapa.http.errors import ApiError, IdempotencyInProgress, MethodNotAllowed
from sapa.http.openapi_responses import list_edge_errors

FILE = ROOT / "docs" / "errors.md"
RETRYABLE_STATUSES = {408, 429, 500, 503}
MAX_NAMED = 12
"""Operations that are listed by name; of more, their tags are listed."""

START = """\
# Errors

Every error response is `{"error": {"code", "message", "details"}}`. Decide by the `code`: it stays the same. The
`message` is for people and may change. `details` names the fields to fix, where there are any. Quote the header
`X-Request-Id` when you ask for help.

After 408, 429, 500, 503 and `IDEMPOTENCY_IN_PROGRESS` send the same request again; wait as long as `Retry-After` says.
Do the same if no response came, or a 502 or 504 that is not in this form: it is a proxy's. Give writes an
`Idempotency-Key`, and a retry never does anything twice. After any other error, change the request first.

This page is written from the declarations of the errors; `make docs` renews it.
"""
ELSEWHERE = """\
## Outside of the API

The chat widget and callbacks of channels get these in the same form; the console and the command line show their
message.
"""


class ErrorEntry(NamedTuple):
    """One code: its classes, and the endpoints that return it."""

    code: str
    classes: list[type[ApiError]]
    endpoints: list[Endpoint]

    @property
    def statuses(self) -> list[int]:
        return sorted({error.status for error in self.classes})

    @property
    def can_be_retried(self) -> bool:
        return self.code == IdempotencyInProgress.code or not RETRYABLE_STATUSES.isdisjoint(self.statuses)


ALL = [endpoint for routes in ROUTES for endpoint in routes.endpoints]


def list_classes(parent: type[ApiError] = ApiError) -> Iterator[type[ApiError]]:
    """All errors of the product; those that tests declare are not of it."""
    for error in parent.__subclasses__():
        if error.__module__.startswith("sapa."):
            yield error
        yield from list_classes(error)


def order_of(error: type[ApiError]) -> tuple[bool, str, str]:
    """The general ones first; in the same order whatever was imported before."""
    return error.__module__ != ApiError.__module__, error.__module__, error.__name__


def import_everything() -> None:
    """A class is known once its module is imported."""
    for module in pkgutil.walk_packages(sapa.__path__, "sapa."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def build_entries() -> list[ErrorEntry]:
    import_everything()
    classes: dict[str, list[type[ApiError]]] = {}
    for error in sorted(set(list_classes()), key=order_of):
        classes.setdefault(error.code, []).append(error)
    endpoints: dict[str, list[Endpoint]] = {MethodNotAllowed.code: ALL}
    for endpoint in ALL:
        for code in {error.code for error in (*endpoint.raises, *list_edge_errors(endpoint))}:
            endpoints.setdefault(code, []).append(endpoint)
    return [ErrorEntry(code, classes[code], endpoints.get(code, [])) for code in sorted(classes)]


def describe(entry: ErrorEntry) -> str:
    status = ", ".join(map(str, entry.statuses)) + (" · can be retried" if entry.can_be_retried else "")
    parts = [
        f"### {entry.code}",
        f"**Status:** {status}",
        f"**Cause:** {join(cause_of(error) for error in entry.classes)}",
        f"**Fix:** {join(error.fix for error in entry.classes)}",
        *([f"**Operations:** {name_operations(entry.endpoints)}"] if entry.endpoints else []),
    ]
    return "\n\n".join(parts) + "\n"


def cause_of(error: type[ApiError]) -> str:
    """The first sentence of the message: what follows says what to do, as the fix does."""
    sentence = error.summary().partition(". ")[0].rstrip(".")
    return f"{sentence[0].upper()}{sentence[1:]}."


def name_operations(endpoints: list[Endpoint]) -> str:
    if len(endpoints) > len(ALL) / 3:
        return "any"
    if len(endpoints) > MAX_NAMED:
        return "those of " + ", ".join(dict.fromkeys(endpoint.routes.tag for endpoint in endpoints))
    return ", ".join(sorted(f"`{endpoint.handler.__name__}`" for endpoint in endpoints))


def join(texts: Iterable[str]) -> str:
    """One text as it is, several as a list, each once."""
    once = list(dict.fromkeys(" ".join(text.split()) for text in texts))
    return once[0] if len(once) == 1 else "\n\n" + "\n".join(f"- {text}" for text in once)


def build_contents(entries: list[ErrorEntry]) -> str:
    rows = [
        f"| {status} | {', '.join(f'[{one.code}](#{one.code.lower()})' for one in entries if status in one.statuses)} |"
        for status in sorted({status for entry in entries for status in entry.statuses})
    ]
    return "\n".join(["| status | codes |", "|---|---|", *rows, ""])


def build_catalogue() -> str:
    entries = build_entries()
    of_api = [entry for entry in entries if entry.endpoints]
    others = [entry for entry in entries if not entry.endpoints]
    parts = [START, build_contents(of_api), "## Errors of the API\n", *map(describe, of_api)]
    return "\n".join([*parts, ELSEWHERE, *map(describe, others)]).replace(" \n\n- ", "\n\n- ")


if __name__ == "__main__":
    FILE.write_text(build_catalogue())
