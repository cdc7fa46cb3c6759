"""`sapa carrier`: a company's accounts with carriers."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.console import Console

from sapa.access.actions import get_company
from sapa.cli.connect import AsJson, CompanyId, show
from sapa.cli.outside import open_context
from sapa.context import AppContext
from sapa.settings import read_settings
from sapa.shipping.carriers.interface import Carrier
from sapa.shipping.carriers.registry import list_adapters
from sapa.shipping.connections import actions as connections
from sapa.shipping.connections.types import CarrierConnection, NewCarrierConnection
from sapa.shipping.providers import PROVIDERS
from sapa.values.company import Company
from sapa.values.provider_accounts import AccountField

app = typer.Typer(no_args_is_help=True, help="A company's accounts with carriers.")

Result = TypeVar("Result")
Work = Callable[[AppContext, Company], Awaitable[Result]]

_PROVIDERS = [name for name, provider in PROVIDERS.items() if not provider.is_local]
_CHOICES = [adapter.name for name in _PROVIDERS if len(list_adapters(name)) > 1 for adapter in list_adapters(name)]

Provider = Annotated[str, typer.Option(help=f"The provider: {', '.join(_PROVIDERS[:-1])} or {_PROVIDERS[-1]}.")]
COLUMNS = ["provider", "carrier", "status", "account"]


@app.command()
def connect(
    company: CompanyId,
    provider: Provider,
    adapter: Annotated[
        str | None, typer.Option(help=f"The carrier, if the provider has several: {' or '.join(_CHOICES)}.")
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A credential as NAME=VALUE, or NAME=@FILE to keep it out of the command line; repeatable.",
        ),
    ] = None,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not verify the account with the carrier.")] = False,
    json: AsJson = False,
) -> None:
    """Connect a carrier account. It replaces the provider's current one.

    Credentials that you do not pass with --set are read from variables such as SAPA_CARRIER_API_KEY, or prompted for.
    The address for the carrier's callbacks is shown only once. It begins with SAPA_PUBLIC_URL, else with SAPA_HOST and
    SAPA_PORT: set for this command what Sapa runs with.
    """
    fields = _parse_credentials(pairs or [])

    async def work(context: AppContext, owner: Company) -> NewCarrierConnection:
        carrier = connections.get_adapter(provider, adapter)
        found = _gather(carrier, fields, is_asking=not json and not owner.is_test)
        return await connections.connect(context, owner, provider, carrier.name, found, verify=not no_verify)

    _show_new(_run(company, work), json)


@app.command("list")
def list_(company: CompanyId, json: AsJson = False) -> None:
    """List the connected carriers and their status, without credentials."""

    async def work(context: AppContext, owner: Company) -> list[CarrierConnection]:
        async with context.database.connection() as db:
            return await connections.list_connections(db, owner)

    _show(_run(company, work), json, "Carriers")


@app.command("test")
def ask(company: CompanyId, provider: Provider, json: AsJson = False) -> None:
    """Verify the account with the carrier; exit code 1 if it does not work."""
    health = _run(company, lambda context, owner: connections.check(context, owner, provider))
    show(health, json, "Carrier tested", ["provider", "adapter", "isWorking", "error"])
    sys.exit(0 if health.is_working else 1)


@app.command()
def disconnect(company: CompanyId, provider: Provider, json: AsJson = False) -> None:
    """Delete an account and its credentials."""

    async def work(context: AppContext, owner: Company) -> None:
        async with context.database.transaction() as tx:
            await connections.disconnect(tx, owner, provider)

    _run(company, work)
    show({"provider": provider, "disconnected": True}, json, "Carrier disconnected", ["provider"])


def _run(company_id: int, work: Work[Result]) -> Result:
    async def run() -> Result:
        async with open_context() as context:
            async with context.database.connection() as db:
                company = await get_company(db, company_id)
            return await work(context, company)

    return asyncio.run(run())


def _parse_credentials(pairs: list[str]) -> dict[str, str]:
    """A pair that cannot be parsed is not repeated in the error: it may be a secret."""
    found: dict[str, str] = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter("write each credential as NAME=VALUE", param_hint="--set")
        if name in found:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--set")
        found[name] = _read_value(value)
    return found


def _read_value(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{value[1:]} cannot be read: {error}", param_hint="--set") from None


def _gather(carrier: Carrier, pairs: Mapping[str, str], is_asking: bool) -> dict[str, str]:
    """From the options, else from variables, else from a prompt."""
    found = dict(pairs)
    for field in carrier.fields:
        value = os.environ.get(f"SAPA_CARRIER_{field.name.upper()}")
        if field.name not in found and value:
            found[field.name] = value
        if field.name not in found and field.is_required and is_asking and sys.stdin.isatty():
            found[field.name] = _prompt(carrier, field)
    return found


def _prompt(carrier: Carrier, field: AccountField) -> str:
    value: str = typer.prompt(f"{carrier.label}: {field.label}", hide_input=field.is_secret, err=True)
    return value


def _show(found: list[CarrierConnection], as_json: bool, title: str) -> None:
    if as_json:
        show(found, as_json, title, [])
    else:
        show([_summary(info) for info in found], as_json, title, COLUMNS)


def _summary(info: CarrierConnection) -> dict[str, str]:
    """A few lines that fit a terminal; --json has the rest."""
    checked = f"verified {info.verified_at[:16].replace('T', ' ')}" if info.verified_at else "not verified"
    troubles = [info.last_error] if info.last_error else []
    account = [f"{name} {value}" for name, value in info.public_fields.items()]
    return {
        "provider": info.provider,
        "carrier": f"{info.label}\n{info.adapter}",
        "status": "\n".join([info.status, "simulated" if info.is_sandbox else checked, *troubles]),
        "account": "\n".join([info.id, *account]),
    }


_LOCAL_ADDRESS = (
    "SAPA_PUBLIC_URL is not set, so the address begins with SAPA_HOST and SAPA_PORT as this command sees them, which a"
    " carrier cannot reach. Put the public address of Sapa in front of /hooks, and set SAPA_PUBLIC_URL for Sapa and its"
    " commands."
)


def _show_new(new: NewCarrierConnection, as_json: bool) -> None:
    if as_json:
        extra = {"callbackUrl": new.callback_url, "leftBehind": new.left_behind}
        show({**msgspec.to_builtins(new.connection), **extra}, as_json, "", [])
        return
    _show([new.connection], as_json, "Carrier connected")
    text = f"\n  {new.callback_url}\n\nGive the carrier this address for its callbacks. It is shown only once."
    if new.left_behind:
        text += (
            f"\n\n{new.left_behind} shipments are under way with the former carrier. They cannot be tracked or"
            " cancelled until you connect it again."
        )
    if read_settings().server.public_url is None:
        text += f"\n\n{_LOCAL_ADDRESS}"
    Console(soft_wrap=True).print(text, highlight=False, markup=False)
