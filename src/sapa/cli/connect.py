"""How commands reach the database and print their results."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sapa.access.actions import get_company
from sapa.db.migrations import is_current, migrate
from sapa.db.pool import Database, Tx, open_database
from sapa.http.errors import Invalid
from sapa.runtime.embedded import EmbeddedServer, open_embedded
from sapa.runtime.processes import CannotStart
from sapa.settings import BadSetting, read_settings
from sapa.values.sealing import Vault
from sapa.wiring import install

Result = TypeVar("Result")

CompanyId = Annotated[
    int, typer.Option("--company", min=1, max=2**63 - 1, help="The company id. Each environment has its own.")
]


class DatabaseUrls(msgspec.Struct, frozen=True):
    owner: str
    app: str


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table for people.")]


@asynccontextmanager
async def reach_database(*, may_begin: bool = False) -> AsyncIterator[Database]:
    """The installation's database: an external one, or the data folder's, started for the duration of the command."""
    install()
    settings = read_settings()
    if settings.database.url is not None:
        async with open_database(settings.database.url, application="sapa command") as database:
            yield database
        return
    async with _open_folder(settings.data, may_begin) as server:
        await _migrate_if_behind(server)
        async with open_database(server.app_url, application="sapa command") as database:
            yield database


@asynccontextmanager
async def reach_owner(*, may_begin: bool = False) -> AsyncIterator[DatabaseUrls]:
    """The same database for commands that need the tables' owner; its schema may be of any version, or missing."""
    settings = read_settings()
    if settings.database.url is not None:
        yield DatabaseUrls(settings.database.owner_url or settings.database.url, settings.database.url)
        return
    async with _open_folder(settings.data, may_begin) as server:
        yield DatabaseUrls(server.owner_url, server.app_url)


def _open_folder(data: Path, may_begin: bool) -> AbstractAsyncContextManager[EmbeddedServer]:
    """Only commands that may begin an installation make a data folder: others were run in the wrong place."""
    if not may_begin:
        refuse_missing(data)
    return open_embedded(data)


def refuse_missing(data: Path) -> None:
    """Raises CannotStart if there is no data folder."""
    if not data.exists():
        advice = "Run the command in the folder that `sapa serve` runs in, or set SAPA_DATA or SAPA_DATABASE_URL."
        raise CannotStart(f"There is no installation in {data.absolute()}. {advice}")


def reach_vault() -> Vault:
    """Call it inside `reach_database`, because the first start creates the data folder's key."""
    return Vault(get_secret_key())


def get_secret_key() -> str:
    settings = read_settings()
    if settings.secret_key is None and settings.database.url is not None:
        raise BadSetting(
            "SAPA_SECRET_KEY is required with SAPA_DATABASE_URL; create it with `openssl rand -base64 32`."
        )
    return settings.secret_key or EmbeddedServer(settings.data).secret_key


async def _migrate_if_behind(server: EmbeddedServer) -> None:
    async with open_database(server.app_url) as database, database.connection() as db:
        current = await is_current(db)
    if not current:
        await migrate(server.owner_url, server.app_url)


def transact(work: Callable[[Tx], Awaitable[Result]], *, may_begin: bool = False) -> Result:
    """Runs a command's work in one transaction."""

    async def run() -> Result:
        async with reach_database(may_begin=may_begin) as database, database.transaction() as tx:
            return await work(tx)

    return asyncio.run(run())


def in_company(company_id: int, work: Callable[[Tx], Awaitable[Result]]) -> Callable[[Tx], Awaitable[Result]]:
    """Like transact, after a check that the company exists."""

    async def run(tx: Tx) -> Result:
        await get_company(tx, company_id)
        return await work(tx)

    return run


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    """Errors of fields name the options that the person used: `allow-ip` for `allowList`."""
    try:
        yield
    except Invalid as error:
        if not error.details:
            raise
        detail = error.details[0]
        raise Invalid.field(options.get(detail.field, detail.field), detail.message) from None


def show(value: Any, as_json: bool, title: str, columns: Sequence[str]) -> None:
    """A struct or a list of them: complete as JSON, or a table of the most useful columns."""
    plain = msgspec.to_builtins(value)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
        return
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, no_wrap=column in {"id", "key"}, overflow="fold")
    for row in plain if isinstance(plain, list) else [plain]:
        table.add_row(*(Text(_cell(row[column])) for column in columns))
    Console().print(table)


def harmless(text: str) -> str:
    """Untrusted text, safe for a terminal: keeps line breaks and tabs, removes control characters."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return harmless(", ".join(map(str, value)))
    return "–" if value is None else harmless(str(value))
