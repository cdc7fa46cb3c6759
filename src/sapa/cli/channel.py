"""`sapa channel`: a company's accounts with channels."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from msgspec import Struct
from rich.console import Console

from sapa.access.actions import get_company
from sapa.cli.connect import AsJson, CompanyId, harmless, show
from sapa.cli.outside import open_context
from sapa.context import AppContext
from sapa.messaging.channel_status import actions as channel_status
from sapa.messaging.channels.interface import BadAccount, Channel, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.channels.widget.adapter import Widget
from sapa.messaging.channels.widget.types import Snippet, SnippetShownOnce
from sapa.messaging.connections import actions as connecting
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.connections.types import (
    ChannelConnection,
    ChannelNotConnected,
    LiveChannel,
    NewChannelConnection,
    SimulatorAccount,
)
from sapa.messaging.inbound import hooks as inbound
from sapa.outbound.client import NotSent, Unclear
from sapa.values.company import Company
from sapa.values.provider_accounts import AccountField

app = typer.Typer(no_args_is_help=True, help=f"Channels: {', '.join(channel.label for channel in CHANNELS.values())}.")

Result = TypeVar("Result")
COLUMNS = ["id", "source", "channel", "account", "health", "lastError"]

SourceOption = Annotated[Source, typer.Option("--source", help="The channel.")]
FieldPairs = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A field of the account as NAME=VALUE, or NAME=@FILE to read a secret from a file; repeatable.",
    ),
]


class ChannelFields(Struct, frozen=True):
    """The fields of an account with a channel."""

    source: str
    channel: str
    fields: list[str]
    """Optional ones end in a question mark."""


@app.command()
def sources(json: AsJson = False) -> None:
    """List the channels and the fields of an account with each."""
    listed = [
        ChannelFields(channel.source, channel.label, [_name(field) for field in channel.fields])
        for channel in CHANNELS.values()
    ]
    show(listed, json, "Channels", ["source", "channel", "fields"])


@app.command()
def connect(
    company: CompanyId,
    source: SourceOption,
    pairs: FieldPairs = None,
    new_hook: Annotated[bool, typer.Option("--new-hook", help="Create a new callback address.")] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not check the account with the channel.")] = False,
    json: AsJson = False,
) -> None:
    """Connect an account, or change the connected one: fields that you leave out stay as they are, except a password
    for another mail server. The callback address is shown once."""
    fields = _parse_fields(CHANNELS[source], pairs or [])

    async def run(context: AppContext, company: Company) -> NewChannelConnection:
        async with context.database.connection() as db:
            draft = await connecting.prepare(context, db, company, source, fields)
        if not no_check:
            await connecting.check(context, company, draft)
        async with context.database.transaction() as tx:
            created = await connecting.connect(context, tx, company, draft, new_hook)
            if not no_check:
                await connecting.record_verified(tx, company, created.connection.id, None)
            info = await connecting.get_info(context, tx, company, created.connection.id)
            return NewChannelConnection(info, created.hook_url, created.generated, created.snippet)

    _show_new(_run(company, run), json)


@app.command("list")
def list_(company: CompanyId, json: AsJson = False) -> None:
    """List a company's channels and their health, without secrets."""

    async def run(context: AppContext, company: Company) -> Sequence[ChannelConnection]:
        async with context.database.connection() as db:
            return await get_environment(company).accounts.list_infos(context, db, company)

    show(list(_run(company, run)), json, "Channels", COLUMNS)


@app.command()
def snippet(company: CompanyId, json: AsJson = False) -> None:
    """Show the web chat snippet of a test environment, and the secret that signs its visitors' identities."""

    async def run(context: AppContext, company: Company) -> Snippet:
        widget, accounts = Widget(), get_environment(company).accounts
        hook = accounts.find_hook(context, company, widget.source)
        if hook is None:
            raise SnippetShownOnce
        async with context.database.connection() as db:
            connected = await accounts.find_by_source(context, db, company, widget.source)
        if connected is None:
            raise ChannelNotConnected
        address, key = context.settings.server.address, hook.rpartition("/")[2]
        return Snippet(widget.build_snippet(address, key), key, connected.connection.credentials["secret"])

    created = _run(company, run)
    if json:
        show(created, json, "", [])
    else:
        Console(soft_wrap=True).print(f"{created.snippet}\n\nsecret: {created.secret}", highlight=False, markup=False)


@app.command()
def simulator(company: CompanyId, source: SourceOption, json: AsJson = False) -> None:
    """Show the account with a channel's simulator, for programs that use it instead of the channel. Test environments
    only."""

    async def run(context: AppContext, company: Company) -> SimulatorAccount:
        found = get_environment(company).accounts.find_simulator(context, company, source)
        if found is None:
            raise LiveChannel
        return found

    show(_run(company, run), json, "Simulator", ["source", "address", "account", "credentials"])


@app.command("test")
def ask(company: CompanyId, source: SourceOption, json: AsJson = False) -> None:
    """Check the account with the channel. No message is sent."""

    async def run(context: AppContext, company: Company) -> ChannelConnection:
        info = await connecting.test(context, company, source)
        if info.health == "ok":
            with suppress(NotSent, Unclear, BadAccount):
                await channel_status.refresh_source(context, company, source)
        return info

    info = _run(company, run)
    show(info, json, "Channel", COLUMNS)
    sys.exit(0 if info.health == "ok" else 1)


@app.command()
def disconnect(company: CompanyId, source: SourceOption, json: AsJson = False) -> None:
    """Delete the account's secrets and its callback address. Messages stay."""

    async def run(context: AppContext, company: Company) -> None:
        async with context.database.transaction() as tx:
            await connecting.disconnect(tx, company, source)

    _run(company, run)
    show({"source": source, "disconnected": True}, json, "Channel disconnected", ["source"])


@app.command()
def replay(
    company: CompanyId,
    source: SourceOption,
    hours: Annotated[int, typer.Option("--hours", min=1, max=720, help="How many hours back.")] = 24,
    json: AsJson = False,
) -> None:
    """Process the callbacks of the last hours again. Callbacks that were already processed change nothing."""
    since = datetime.now(UTC) - timedelta(hours=hours)

    async def run(context: AppContext, company: Company) -> int:
        async with context.database.transaction() as tx:
            connected = await get_environment(company).accounts.find_by_source(context, tx, company, source)
            if connected is None:
                raise ChannelNotConnected
            return await inbound.replay(tx, connected, since)

    show({"source": source, "replayed": _run(company, run)}, json, "Callbacks replayed", ["source", "replayed"])


def _run(company_id: int, work: Callable[[AppContext, Company], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with open_context() as context:
            async with context.database.connection() as db:
                company = await get_company(db, company_id)
            return await work(context, company)

    return asyncio.run(run())


def _parse_fields(channel: Channel, pairs: Sequence[str]) -> Mapping[str, str]:
    """An empty value clears an optional field."""
    parts = [item.partition("=") for item in pairs]
    names = {field.name for field in channel.fields}
    for name, equals, _ in parts:
        if not equals or name not in names:
            listed = ", ".join(_name(field) for field in channel.fields)
            raise typer.BadParameter(f"--set {name}: give NAME=VALUE with one of {listed}")
    return {name: _read_value(value) for name, _, value in parts}


def _read_value(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{value[1:]} cannot be read: {error}") from None


def _name(field: AccountField) -> str:
    return field.name if field.is_required else f"{field.name}?"


def _show_new(created: NewChannelConnection, json: bool) -> None:
    if json:
        show(created, json, "", [])
        return
    show(created.connection, json, "Channel connected", COLUMNS)
    notes = [f"\n{name}: {value}" for name, value in created.generated.items()]
    if created.snippet:
        notes += [f"\nAdd this to the pages of your site: {created.snippet}"]
    elif created.hook_url:
        notes += [f"\nCallbacks go to {created.hook_url}"]
    if notes:
        text = harmless("".join(notes)) + "\n\nThis is shown only once: copy it now."
        Console(soft_wrap=True).print(text, highlight=False, markup=False)
