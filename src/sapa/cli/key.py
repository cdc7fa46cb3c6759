"""`sapa key`: API keys."""

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from sapa.access import actions
from sapa.access.types import DATA_SCOPES, DEFAULT_RATE_LIMIT, ApiKey, KeyIn, KeyProduct, NewKey
from sapa.cli.connect import AsJson, CompanyId, naming_options, show, transact
from sapa.db.pool import Tx

app = typer.Typer(no_args_is_help=True, help="API keys.")

OPTIONS = {
    "scopes": "scope",
    "products": "product",
    "allowList": "allow-ip",
    "rateLimit": "rate-limit",
    "expiresAt": "expires-at",
}
"""Fields of a key, by the options that set them."""

Id = Annotated[str, typer.Argument(help="The key's id, such as key_01j….")]


@app.command()
def create(
    company: CompanyId,
    name: Annotated[str, typer.Option(help="What the key is for.")],
    scope: Annotated[list[str] | None, typer.Option(help="What it may do, such as orders:READ; repeatable.")] = None,
    all_scopes: Annotated[
        bool,
        typer.Option("--all-scopes", help="Allow every product, and every scope but webhooks, keys and connections."),
    ] = False,
    product: Annotated[list[str] | None, typer.Option(help="A product that the key gives access to: CRM.")] = None,
    allow_ip: Annotated[list[str] | None, typer.Option(help="An IP address or CIDR to allow; repeatable.")] = None,
    rate_limit: Annotated[int, typer.Option(help="Requests a minute.")] = DEFAULT_RATE_LIMIT,
    mcp: Annotated[bool, typer.Option(help="Whether AI agents may use the key with MCP.")] = True,
    expires_at: Annotated[str | None, typer.Option(help="When it stops working, such as 2027-01-31T00:00:00Z.")] = None,
    json: AsJson = False,
) -> None:
    """Create a key. Its value is shown once."""
    if not scope and not all_scopes:
        raise typer.BadParameter("use at least one --scope, or --all-scopes")
    body = KeyIn(
        name=name,
        scopes=[*(DATA_SCOPES if all_scopes else ()), *(scope or ())],
        products=[*(KeyProduct if all_scopes else ()), *(product or ())],
        allow_list=allow_ip or [],
        rate_limit=rate_limit,
        allows_mcp=mcp,
        expires_at=expires_at,
    )
    with naming_options(OPTIONS):
        new = transact(lambda tx: actions.create_key(tx, company, body))
    _show_new(new, json)


@app.command()
def rotate(id: Id, json: AsJson = False) -> None:
    """Create a new key with the same rights; the old one works for 24 more hours."""
    _show_new(transact(lambda tx: actions.rotate_key(tx, id)), json)


@app.command()
def update(
    id: Id,
    mcp: Annotated[bool, typer.Option("--mcp/--no-mcp", help="Whether AI agents may use the key with MCP.")],
    json: AsJson = False,
) -> None:
    """Allow or forbid the use of a key with MCP."""
    show(transact(lambda tx: actions.set_mcp(tx, id, mcp)), json, "Key updated", ["id", "name", "allowsMcp"])


@app.command()
def revoke(id: Id, json: AsJson = False) -> None:
    """Revoke a key; it stops working at once."""
    show(transact(lambda tx: actions.revoke_key(tx, id))[0], json, "Key revoked", ["id", "name", "status"])


@app.command("list")
def list_(
    company: Annotated[int | None, typer.Option(min=1, max=2**63 - 1, help="Only this company's keys.")] = None,
    json: AsJson = False,
) -> None:
    """List keys, without their values."""

    async def find(tx: Tx) -> list[ApiKey]:
        if company is not None:
            await actions.get_company(tx, company)
        return await actions.list_keys(tx, company)

    keys = transact(find)
    if json:
        show(keys, json, "API keys", [])
    else:
        show([_summary(key) for key in keys], json, "API keys", ["key", "name", "status"])


def _summary(key: ApiKey) -> dict[str, str]:
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
