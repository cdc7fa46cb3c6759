"""`sapa key`: API keys."""

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from sapa.access import actions
from sapa.access.types import DEFAULT_RATE_LIMIT, KeyIn, KeyInfo, KeyProduct, NewKey, Scope
from sapa.cli.connect import AsJson, CompanyId, show, transact

app = typer.Typer(no_args_is_help=True, help="API keys.")

Id = Annotated[str, typer.Argument(help="The key's id, such as key_01j….")]


@app.command()
def create(
    company: CompanyId,
    name: Annotated[str, typer.Option(help="What the key is for.")],
    scope: Annotated[list[str] | None, typer.Option(help="What it may do, such as orders:READ; repeatable.")] = None,
    all_scopes: Annotated[bool, typer.Option("--all-scopes", help="Allow every scope and product.")] = False,
    product: Annotated[list[str] | None, typer.Option(help="A product that the key gives access to: CRM.")] = None,
    allow_ip: Annotated[list[str] | None, typer.Option(help="An IP address or CIDR to allow; repeatable.")] = None,
    rate_limit: Annotated[int, typer.Option(help="Requests a minute.")] = DEFAULT_RATE_LIMIT,
    expires_at: Annotated[str | None, typer.Option(help="When it stops working, such as 2027-01-31T00:00:00Z.")] = None,
    json: AsJson = False,
) -> None:
    """Create a key. Its value is shown once."""
    if not scope and not all_scopes:
        raise typer.BadParameter("use at least one --scope, or --all-scopes")
    body = KeyIn(
        name=name,
        scopes=list(Scope) if all_scopes else scope or [],
        products=[*(KeyProduct if all_scopes else ()), *(product or ())],
        allow_list=allow_ip or [],
        rate_limit=rate_limit,
        expires_at=expires_at,
    )
    _show_new(transact(lambda tx: actions.create_key(tx, company, body)), json)


@app.command()
def rotate(id: Id, json: AsJson = False) -> None:
    """Create a new key with the same rights; the old one works for 24 more hours."""
    _show_new(transact(lambda tx: actions.rotate_key(tx, id)), json)


@app.command()
def revoke(id: Id, json: AsJson = False) -> None:
    """Revoke a key; it stops working at once."""
    show(transact(lambda tx: actions.revoke_key(tx, id)), json, "Key revoked", ["id", "name", "status"])


@app.command("list")
def list_(
    company: Annotated[int | None, typer.Option(min=1, max=2**63 - 1, help="Only this company's keys.")] = None,
    json: AsJson = False,
) -> None:
    """List keys, without their values."""
    keys = transact(lambda tx: actions.list_keys(tx, company))
    if json:
        show(keys, json, "API keys", [])
    else:
        show([_summary(key) for key in keys], json, "API keys", ["key", "name", "status"])


def _summary(key: KeyInfo) -> dict[str, str]:
    """Two lines that fit a terminal; --json has the rest."""
    used = f"{key.last_used_at[:10]} {key.last_used_at[11:16]} {key.last_used_ip}" if key.last_used_at else "never"
    return {
        "key": f"{key.id}\n{key.prefix}…{key.last_four}",
        "name": f"{key.name}\ncompany {key.company_id}",
        "status": f"{key.status}\nused {used}",
    }


def _show_new(new: NewKey, as_json: bool) -> None:
    info: dict[str, Any] = msgspec.to_builtins(new.info)
    show({**info, "key": new.key}, as_json, "Key created", ["id", "name", "environment", "rateLimit"])
    if not as_json:
        text = f"\n  {new.key}\n\nIt is shown only once: copy it now."
        Console(soft_wrap=True).print(text, highlight=False)
