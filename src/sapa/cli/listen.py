"""`sapa listen`: a company's events on a developer's machine, as they happen."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

import asyncpg
import msgspec
import typer
from rich.console import Console

from sapa import domains  # noqa: F401 - declares every kind of event
from sapa.access import actions as access
from sapa.cli.connect import AsJson, harmless, reach_database, transact
from sapa.cli.signals import run_until_signal
from sapa.db.connection import DatabaseAway
from sapa.http.errors import Invalid
from sapa.settings import WebhookSettings, read_settings
from sapa.webhooks.endpoints.fields import check_events, check_url
from sapa.webhooks.listen.forwarding import (
    RETRY_PAUSES,
    EventListener,
    Forwarder,
    Interrupted,
    ListenRefused,
    StreamMessage,
    StreamOpened,
)
from sapa.webhooks.listen.streams import ListenedEvent
from sapa.webhooks.sender import SendResult
from sapa.webhooks.signing import new_secret
from sapa.webhooks.tokens import actions as tokens
from sapa.webhooks.types import TokenNotFound

OWN_TOKEN_DAYS = 1
NO_DATA = (
    "On the server's own machine, run this in the folder that `sapa serve` runs in, or set SAPA_DATA. Elsewhere, use "
    "--server, and --token, which `sapa token create` creates there."
)


def listen(
    forward_to: Annotated[
        str | None, typer.Option(help="Where to forward each event, signed like a real delivery.")
    ] = None,
    company: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2**63 - 1,
            help="Only on the server's own machine. Defaults to the test environment if there is one company.",
        ),
    ] = None,
    server: Annotated[str | None, typer.Option(help="The installation's address. Defaults to this machine's.")] = None,
    token: Annotated[str | None, typer.Option(envvar="SAPA_TOKEN", help="A developer token, dev_….")] = None,
    events: Annotated[list[str] | None, typer.Option(help="Only this kind of event; repeatable.")] = None,
    print_json: Annotated[bool, typer.Option("--print-json", "-v", help="Also show each event's body.")] = False,
    json: AsJson = False,
) -> None:
    """Show a company's events as they happen, and forward them to your own server."""
    kinds = check_events(events or [])
    printer = EventPrinter(json, print_json)
    source = ListenToken(token) if token is not None else OwnToken(company or _get_only_company())
    listener = EventListener(server or read_settings().server.address, source.get, kinds)
    url = None if forward_to is None else check_url(forward_to, WebhookSettings(True, ()))
    try:
        asyncio.run(run_until_signal(_listen(listener, url, printer)))
    except ListenRefused as reason:
        raise Invalid(str(reason)) from None
    finally:
        source.release()


def _get_only_company() -> int:
    """The test environment of the only company, as after the first start."""
    settings = read_settings()
    if settings.database.url is None and not settings.data.exists():
        raise typer.BadParameter(NO_DATA)
    rows = transact(access.list_companies)
    tests = [row.company_id for row in rows if row.company.is_test]
    if len(tests) != 1:
        choices = ", ".join(f"{row.company_id} ({row.name}, {row.environment})" for row in rows)
        raise Invalid(f"Which company? Use --company: {choices or 'there is no company yet'}.")
    return tests[0]


async def _listen(listener: EventListener, url: str | None, printer: "EventPrinter") -> None:
    secret = new_secret()
    forwarder = None if url is None else Forwarder(url, secret)
    try:
        async for item in listener.follow():
            printer.print_item(item, url, secret)
            if isinstance(item, ListenedEvent) and forwarder is not None:
                async for number, outcome in forwarder.forward(item):
                    printer.print_outcome(item, number, outcome)
    finally:
        if forwarder is not None:
            await forwarder.close()


class ListenToken:
    """A token from the command line."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get(self, was_refused: bool) -> str:
        if was_refused:
            raise ListenRefused(
                "The developer token is invalid, revoked or expired; create another with `sapa token create`."
            )
        return self._token

    def release(self) -> None:
        """The token belongs to the user."""


class OwnToken:
    """A token that the command creates, and revokes at its end."""

    def __init__(self, company: int) -> None:
        self._company = company
        self._token: str | None = None

    async def get(self, was_refused: bool) -> str:
        if self._token is None or was_refused:
            async with reach_database() as database, database.transaction() as tx:
                self._token = (await tokens.create(tx, self._company, OWN_TOKEN_DAYS)).token
        return self._token

    def release(self) -> None:
        """It expires automatically if the database is away."""
        if self._token is not None:
            with suppress(DatabaseAway, asyncpg.PostgresError, TokenNotFound):
                asyncio.run(self._revoke(self._token))

    async def _revoke(self, token: str) -> None:
        async with reach_database() as database, database.transaction() as tx:
            await tokens.revoke(tx, token)


class EventPrinter:
    """Prints lines for people, or one JSON object per line for programs."""

    def __init__(self, as_json: bool, with_bodies: bool) -> None:
        self._as_json = as_json
        self._with_bodies = with_bodies
        self._console = Console(soft_wrap=True, highlight=False)
        self._is_welcomed = False
        self._is_away = False

    def print_item(self, item: StreamMessage, url: str | None, secret: str) -> None:
        if isinstance(item, StreamOpened):
            text = "Listening again." if self._is_welcomed else _welcome(url, secret)
            self._is_welcomed, self._is_away = True, False
            self._print(text, type="ready", forwardTo=url, secret=secret if url else None)
        elif isinstance(item, Interrupted):
            self._print_interruption(item.reason)
        elif url is None:
            self._print(f"{_line(item)}{self._body(item)}", type="event", **self._fields(item))

    def _print_interruption(self, reason: str) -> None:
        """Once per interruption."""
        if not self._is_away:
            advice = "" if self._is_welcomed else " If the server has another address, use --server."
            self._print(f"Not connected ({reason}); trying again.{advice}", type="interrupted", reason=reason)
        self._is_away = True

    def print_outcome(self, event: ListenedEvent, number: int, outcome: SendResult) -> None:
        is_last = number > len(RETRY_PAUSES)
        kind, note = _describe(outcome, is_last)
        result = outcome.status if outcome.delivered else outcome.message
        self._print(
            f"{_line(event)}  → {result}  {outcome.milliseconds} ms{note}{self._body(event) if number == 1 else ''}",
            type=kind,
            **self._fields(event),
            attempt=number,
            status=outcome.status,
            milliseconds=outcome.milliseconds,
            error=outcome.error,
            message=outcome.message,
        )

    def _body(self, event: ListenedEvent) -> str:
        return f"\n{event.body}" if self._with_bodies else ""

    def _fields(self, event: ListenedEvent) -> dict[str, Any]:
        body = {"body": event.body} if self._with_bodies else {}
        return {"id": event.id, "kind": event.kind, "createdAt": event.created_at, **body}

    def _print(self, text: str, **fields: Any) -> None:
        if self._as_json:
            typer.echo(msgspec.json.encode(fields).decode())
        else:
            self._console.print(harmless(text), markup=False)


def _describe(outcome: SendResult, is_last: bool) -> tuple[str, str]:
    if outcome.delivered:
        return "forwarded", ""
    return ("given up", "; given up") if is_last else ("failed", "; trying again")


def _line(event: ListenedEvent) -> str:
    return f"{event.created_at[11:19]}  {event.kind}  {event.id}"


def _welcome(url: str | None, secret: str) -> str:
    if url is None:
        return "Ready. Events are shown as they happen; Ctrl-C ends it."
    return f"Ready. Events are forwarded to {url}, signed with this secret:\n\n  {secret}\n"
