"""What a statement may not do where the companies' tables are spread over machines.

Citus sends a change to the machine that has the company's rows, after the coordinator has replaced each clock by its
time. That it can only do where the clock stands alone. What is refused here was learnt from Citus itself.
"""

from collections.abc import Iterator
from typing import Any

import pglast
from pglast import ast

from sapa.db.distribution import LOCAL_TABLES, REFERENCE_TABLES
from sapa.db.sql import Statement

VOLATILE = {
    "clock_timestamp", "timeofday", "random", "gen_random_uuid", "nextval", "set_config", "pg_notify",
    "pg_advisory_xact_lock", "pg_try_advisory_xact_lock",
}  # fmt: skip
STABLE = {
    "now", "statement_timestamp", "transaction_timestamp", "current_setting", "to_char", "age", "to_json",
    "row_to_json", "array_to_json", "json_build_object", "json_build_array",
}  # fmt: skip
PARTS = {"extract", "date_part", "date_trunc"}
"""Of an instant they depend on the session's time zone, of an interval they do not."""
DATED = {"date", "timestamptz", "interval"}
SNAPSHOTS = {"pg_current_snapshot", "pg_snapshot_xmin", "pg_snapshot_xmax", "pg_current_xact_id"}

ON_COORDINATOR = LOCAL_TABLES - {
    "organisations", "memberships", "one_time_links", "audit_entries", "users", "sessions", "known_browsers",
    "api_keys",
}  # fmt: skip
"""Tables that Citus knows nothing of. Those that foreign keys connect with `companies`, it knows."""

ON_ONE_SERVER = {
    "sapa.webhooks.dispatch.queries.LIST_LANES",
    "sapa.shipping.bookings.queries.LIST_CANCELLING_IN_TURN",
    "sapa.shipping.bookings.queries.LIST_DUE_IN_TURN",
    "sapa.shipping.tracking.queries.LIST_DUE_IN_TURN",
    "sapa.shipping.tracking.queries.LIST_UNTRACKED_IN_TURN",
}
"""Statements that Citus refuses: they go from company to company, so that they read few rows of a long queue. There
their forms for shards are used instead."""

_CHANGES = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)


def list_unshardable(statement: Statement[Any]) -> list[str]:
    """Why Citus refuses the statement, or would run it wrongly."""
    (parsed,) = pglast.parse_sql(statement.text)
    tree = parsed.stmt
    is_sharded = bool(_list_tables(tree) - LOCAL_TABLES - REFERENCE_TABLES)
    found = [reason for node in walk(tree) for reason in _of_change(node)]
    if statement.crosses is not None and is_sharded:
        found += [reason for node in walk(tree) if isinstance(node, ast.SelectStmt) for reason in _of_search(node)]
    if not is_sharded and any(_find_function(node) in SNAPSHOTS for node in walk(tree)):
        found.append("a snapshot is that of one server: read it together with a row of the company")
    return sorted(set(found))


def list_inserted(statement: Statement[Any]) -> list[str]:
    """The tables that the statement inserts into, in the order in which Citus does it."""
    (parsed,) = pglast.parse_sql(statement.text)
    return list(_list_inserted(parsed.stmt))


def _list_inserted(node: Any) -> Iterator[str]:
    for part in node.withClause.ctes if node.withClause else ():
        yield from _list_inserted(part.ctequery)
    if isinstance(node, ast.InsertStmt):
        yield from _list_tables(node.relation)


def walk(node: Any) -> Iterator[Any]:
    """The node and everything inside it."""
    if isinstance(node, ast.Node):
        yield node
        for name in node:
            yield from walk(getattr(node, name))
    elif isinstance(node, tuple):
        for part in node:
            yield from walk(part)


def _of_change(node: Any) -> Iterator[str]:
    if not isinstance(node, _CHANGES) or _list_tables(node.relation) <= ON_COORDINATOR:
        return
    if _list_mutable(node.returningClause):
        yield "RETURNING has a clock, JSON that is built, or something else that depends on the session"
    if isinstance(node, ast.InsertStmt):
        yield from _of_insert(node)
    else:
        yield from _of_condition("WHERE", node.whereClause)
        for source in (node.fromClause if isinstance(node, ast.UpdateStmt) else node.usingClause) or ():
            yield from _of_source(source)
    for assigned in (node.targetList or ()) if isinstance(node, ast.UpdateStmt) else ():
        yield from _of_condition("SET", assigned.val)


def _of_source(node: Any) -> Iterator[str]:
    """The planner puts the expressions of a simple subquery into the change itself."""
    query = getattr(node, "subquery", None)
    if query is None or query.limitOffset or query.groupClause or query.distinctClause:
        return
    if any(_list_mutable(column) and _has_column(column) for column in query.targetList or ()):
        yield "a subquery of FROM has a clock: end it with OFFSET 0"


def _of_search(node: Any) -> Iterator[str]:
    """Of a query over all companies."""
    if node.withClause and node.withClause.recursive:
        yield "a recursive query does not go from machine to machine"
    if node.lockingClause:
        yield "rows of many companies are locked: find them first, then lock them company by company"
    tables = {name for part in _list_direct(node.fromClause) for name in _list_tables(part)}
    if tables and tables <= REFERENCE_TABLES and _list_tables(node) - REFERENCE_TABLES:
        yield "the search begins with the companies: begin with the table of the work"


def _list_direct(node: Any) -> Iterator[Any]:
    """What a FROM begins with: not what is read for each row of it."""
    for part in node or ():
        if isinstance(part, ast.JoinExpr):
            yield from _list_direct((part.larg, part.rarg))
        elif not getattr(part, "lateral", False):
            yield part


def _of_insert(node: Any) -> Iterator[str]:
    if node.selectStmt and any(isinstance(part, ast.SubLink) for part in walk(node.returningClause)):
        yield "RETURNING of an INSERT has a query: put the INSERT into WITH, and the query after it"
    conflict = node.onConflictClause
    if conflict and _list_mutable(conflict.targetList):
        yield "DO UPDATE SET has a clock, or the sum of an instant and an interval: use excluded"
    if conflict and _list_mutable(conflict.whereClause):
        yield "the WHERE of DO UPDATE has a clock, or the sum of an instant and an interval: use excluded"


def _of_condition(place: str, expression: Any) -> Iterator[str]:
    for node in walk(expression):
        if _find_function(node) in VOLATILE:
            yield f"{place} has {_find_function(node)}()"
        if isinstance(node, ast.CaseExpr | ast.CoalesceExpr) and _list_mutable(node):
            yield f"{place} has a clock inside CASE or coalesce()"
        if _is_sum(node) and _has_column(node):
            yield f"{place} adds an interval to an instant of a row: use add_interval()"
        if isinstance(node, ast.TypeCast) and _read_type(node) in DATED and _has_column(node.arg):
            yield f"{place} reads text of a row as a date: do it in a subquery that groups"
        if isinstance(node, ast.CaseExpr) and node.arg is not None:
            yield f"{place} has CASE … WHEN: write CASE WHEN …"
        if isinstance(node, ast.A_Indices):
            yield f"{place} takes an element of an array, which ends Citus 13's process"


def _list_mutable(expression: Any) -> list[Any]:
    return [
        node
        for node in walk(expression)
        if _find_function(node) in VOLATILE | STABLE
        or _is_sum(node)
        or (_find_function(node) in PARTS and isinstance(node.args[-1], ast.ColumnRef))
        or (isinstance(node, ast.CaseExpr) and node.arg is not None)
    ]


def _has_column(expression: Any) -> bool:
    return any(isinstance(node, ast.ColumnRef) for node in walk(expression))


def _find_function(node: Any) -> str | None:
    if isinstance(node, ast.SQLValueFunction):
        return "now"
    return _last(node.funcname) if isinstance(node, ast.FuncCall) else None


def _read_type(cast: Any) -> str:
    return _last(cast.typeName.names)


def _last(names: Any) -> str:
    """Of a qualified name, without its schema or table."""
    return str(getattr(names[-1], "sval", ""))


def _is_sum(node: Any) -> bool:
    """Whether it is an instant and an interval, whose sum depends on the session's time zone."""
    if not isinstance(node, ast.A_Expr):
        return False
    sides = (node.lexpr, node.rexpr)
    return (
        _last(node.name) in "+-"
        and node.lexpr is not None
        and _is_interval(node.lexpr) != _is_interval(node.rexpr)
        and not any(isinstance(side, ast.ParamRef) or _is_in_utc(side) or _is_date(side) for side in sides)
    )


def _is_interval(node: Any) -> bool:
    if isinstance(node, ast.TypeCast):
        return _read_type(node) == "interval"
    if isinstance(node, ast.ColumnRef):
        return _last(node.fields) in {"clock_offset", "back"}
    return _find_function(node) == "make_interval" or (isinstance(node, ast.A_Expr) and _is_interval(node.rexpr))


def _is_in_utc(node: Any) -> bool:
    return _find_function(node) == "timezone"


def _is_date(node: Any) -> bool:
    return isinstance(node, ast.ColumnRef) and _last(node.fields).endswith("_on")


def _list_tables(statement: Any) -> set[str]:
    names = {str(node.ctename) for node in walk(statement) if isinstance(node, ast.CommonTableExpr)}
    return {str(node.relname) for node in walk(statement) if isinstance(node, ast.RangeVar)} - names
