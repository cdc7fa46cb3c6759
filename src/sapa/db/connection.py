"""Connections whose errors tell a lost database from a bug of ours."""
# ruff: noqa: ASYNC109 — the time limits are parameters of asyncpg's methods, which are repeated here

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import asyncpg
from asyncpg.connection import Connection as AsyncpgConnection
from asyncpg.exceptions import InternalClientError, InvalidCachedStatementError, OutdatedSchemaCacheError
from asyncpg.transaction import Transaction

from sapa.db.hosts import NoHostAccepts, limit_silence, open_first, split_hosts

if TYPE_CHECKING:
    Connection: TypeAlias = AsyncpgConnection[asyncpg.Record]
else:
    Connection = AsyncpgConnection


class DatabaseAway(Exception):
    """PostgreSQL is away, restarting, read-only after a failover, full, or too slow: the caller may try again."""

    @classmethod
    def because(cls, error: BaseException) -> "DatabaseAway":
        return cls(f"{type(error).__name__}: {error}")


# Errors of a connection that was lost or cannot be used.
_LOST = (
    asyncpg.CannotConnectNowError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.ConnectionFailureError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    InternalClientError,
)

# Of a statement: asyncpg waits for the socket itself, so an OSError is never one of these, and a TimeoutError is the
# command's own. An InterfaceError is the caller's mistake, unless the connection is closed.
_STATEMENT = (*_LOST, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalServerError)

# Citus copies the rows of INSERT … SELECT to their machine. What that one refuses has its words, and not its code.
_REFUSED = {
    "violates unique constraint": asyncpg.UniqueViolationError,
    "violates check constraint": asyncpg.CheckViolationError,
    "violates foreign key constraint": asyncpg.ForeignKeyViolationError,
    "violates not-null constraint": asyncpg.NotNullViolationError,
    "deadlock detected": asyncpg.DeadlockDetectedError,
}

_CONNECT = (
    *_LOST,
    OSError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ObjectNotInPrerequisiteStateError,
)


def _get_all(rows: Any) -> Any:
    return rows


def _get_first(rows: Any) -> Any:
    return rows[0] if rows else None


def _get_status(result: Any) -> Any:
    _, status, _ = result
    return status.decode()


class TranslatingConnection(Connection):
    """Raises DatabaseAway when the database is lost during a statement, and for no other reason.

    Every statement passes here, and one more coroutine costs a microsecond: the fetches return that of `_run`.
    """

    def fetch(
        self, query: str, *args: object, timeout: float | None = None, record_class: Any = None
    ) -> Coroutine[Any, Any, Any]:
        return self._run(query, args, 0, timeout, record_class, _get_all)

    def fetchrow(
        self, query: str, *args: object, timeout: float | None = None, record_class: Any = None
    ) -> Coroutine[Any, Any, Any]:
        return self._run(query, args, 1, timeout, record_class, _get_first)

    def fetchval(
        self, query: str, *args: object, column: int = 0, timeout: float | None = None
    ) -> Coroutine[Any, Any, Any]:
        return self._run(query, args, 1, timeout, None, lambda rows: rows[0][column] if rows else None)

    async def _run(
        self,
        query: str,
        args: tuple[object, ...],
        limit: int,
        timeout: float | None,
        kind: Any,
        choose: Callable[[Any], Any],
        has_status: bool = False,
    ) -> Any:
        """A statement that is prepared already is run at once; asyncpg's way there takes four more coroutines. Whatever
        is unusual goes that way: the first time, a traced call, a table that has changed since."""
        try:
            self._check_open()  # type: ignore[attr-defined]
            protocol = self._protocol  # type: ignore[attr-defined]
            statement = self._stmt_cache.get((query, kind or protocol.get_record_class(), False))  # type: ignore[attr-defined]
            if statement is not None and not self._query_loggers:  # type: ignore[attr-defined]
                try:
                    return choose(await protocol.bind_execute(statement, args, "", limit, has_status, timeout))
                except OutdatedSchemaCacheError:
                    await self.reload_schema_state()
                    raise
                except InvalidCachedStatementError:
                    self._drop_global_statement_cache()  # type: ignore[attr-defined]
                    if protocol.is_in_transaction():
                        raise
            return choose(
                await self._execute(query, args, limit, timeout, return_status=has_status, record_class=kind)  # type: ignore[attr-defined]
            )
        except _STATEMENT as error:
            _raise_translated(self, error)
            raise

    async def execute(self, query: str, *args: object, timeout: float | None = None) -> str:
        if args:
            return str(await self._run(query, args, 0, timeout, None, _get_status, has_status=True))
        try:
            return await super().execute(query, timeout=timeout)
        except _STATEMENT as error:
            _raise_translated(self, error)
            raise

    async def copy_records_to_table(self, table_name: str, **options: Any) -> str:
        try:
            return await super().copy_records_to_table(table_name, **options)
        except _STATEMENT as error:
            _raise_translated(self, error)
            raise

    def transaction(
        self,
        *,
        isolation: Literal["serializable", "repeatable_read", "read_committed", "read_uncommitted"] | None = None,
        readonly: bool = False,
        deferrable: bool = False,
    ) -> Transaction:
        if self.is_closed():
            raise DatabaseAway("the connection is closed")
        return TranslatingTransaction(self, isolation, readonly, deferrable)


def _raise_translated(connection: Connection, error: Exception) -> None:
    if isinstance(error, asyncpg.InternalServerError):
        for words, violation in _REFUSED.items():
            if words in str(error):
                raise violation(str(error)) from error
    elif not isinstance(error, asyncpg.InterfaceError) or connection.is_closed():
        raise DatabaseAway.because(error) from error


class TranslatingTransaction(Transaction):
    """Raises DatabaseAway when its connection is closed: nothing was committed."""

    __slots__ = ()

    def _check_conn_validity(self, method: str) -> None:
        connection: Connection = self._connection  # type: ignore[attr-defined]
        if connection.is_closed():
            raise DatabaseAway(f"the connection was closed before the transaction's {method}")
        super()._check_conn_validity(method)  # type: ignore[misc]


@contextmanager
def translate_errors(connection: Connection) -> Iterator[None]:
    """For a cursor, whose statements don't pass through its connection's methods."""
    try:
        yield
    except _STATEMENT as error:
        _raise_translated(connection, error)
        raise


async def connect(url: str, **options: Any) -> Connection:
    """A connection of its own, outside the pool, with the options of `asyncpg.connect`.

    Of several hosts only the primary will do, unless the address says otherwise.
    """
    options = {"connection_class": TranslatingConnection} | options
    if len(split_hosts(url)) == 1:
        return await _connect_to(url, options)
    if "target_session_attrs" not in url:
        options["target_session_attrs"] = "read-write"
    try:
        return await open_first(url, partial(_connect_to, options=options), AsyncpgConnection.terminate)
    except NoHostAccepts as refused:
        for error in refused.errors:
            if not isinstance(error, DatabaseAway | TimeoutError):
                raise error from None
        raise DatabaseAway(str(refused)) from refused


async def _connect_to(url: str, options: dict[str, Any]) -> Connection:
    try:
        connection: Connection = await asyncpg.connect(url, **options)
    except _CONNECT as error:
        if isinstance(error, ValueError):  # asyncpg cannot parse the address
            raise
        raise DatabaseAway.because(error) from error
    limit_silence(connection._transport)  # type: ignore[attr-defined]
    return connection
