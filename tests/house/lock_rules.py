"""What a migration may do to tables that are in use: nothing that holds a strong lock for as long as a table is large.

The statements are parsed by PostgreSQL's own parser. What is not known to be quick is refused.
"""

import re
from collections.abc import Iterator
from typing import Any

import pglast
from pglast import ast, enums

from sapa.db.migrations.files import BATCH, Migration

FIRST = 63
"""Migrations before this one are released; they were written when nothing was large."""
MAX_LOCK_MILLISECONDS = 1_000
"""Everybody waits behind a migration that waits for a lock. It is tried again."""

_LOCK_LIMIT = re.compile(r"(?:--[^\n]*\n|\s)*SET LOCAL lock_timeout = '(\d+)(m?s)';").match

_Alter = enums.AlterTableType
_QUICK_CHANGES = {
    _Alter.AT_ColumnDefault, _Alter.AT_DropNotNull, _Alter.AT_DropConstraint, _Alter.AT_DropExpression,
    _Alter.AT_SetRelOptions, _Alter.AT_ResetRelOptions, _Alter.AT_SetStatistics, _Alter.AT_SetStorage,
    _Alter.AT_ReplicaIdentity,
}  # fmt: skip
_HARMLESS = (
    ast.VariableSetStmt, ast.CreateFunctionStmt, ast.AlterFunctionStmt, ast.GrantStmt, ast.CommentStmt, ast.CreateStmt,
    ast.CreateExtensionStmt, ast.CreateSeqStmt,
)  # fmt: skip
_CHANGES_OF_ROWS = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)


def list_long_locks(migration: Migration) -> list[str]:
    """Why the migration may stop callers."""
    statements = [raw.stmt for raw in pglast.parse_sql(migration.text.replace(BATCH, "true"))]
    if migration.step == "transaction":
        found = [*_of_limit(migration), *_of_transaction(migration, statements)]
    elif migration.step == "concurrently":
        found = [reason for statement in statements for reason in _of_concurrent(statement)]
    else:
        is_change = all(isinstance(statement, _CHANGES_OF_ROWS) for statement in statements)
        found = [] if is_change else ["batches change rows, and nothing else"]
    return [f"{migration.name}: {reason}" for reason in found]


def _of_limit(migration: Migration) -> Iterator[str]:
    limit = _LOCK_LIMIT(migration.text)
    if limit is None or int(limit[1]) * (1 if limit[2] == "ms" else 1_000) > MAX_LOCK_MILLISECONDS:
        yield "start with SET LOCAL lock_timeout = '1s' or less"


def _of_transaction(migration: Migration, statements: list[Any]) -> Iterator[str]:
    new = {_find_table(statement) for statement in statements if isinstance(statement, ast.CreateStmt)}
    is_contraction = migration.runs_with_code_since == migration.number
    for statement in statements:
        table = _find_table(statement)
        if isinstance(statement, _HARMLESS) or table in new:
            continue
        if isinstance(statement, ast.AlterTableStmt):
            for command in statement.cmds or ():
                yield from _of_change(table, command, is_contraction)
        elif isinstance(statement, ast.DropStmt):
            yield from _of_drop(statement, is_contraction)
        elif isinstance(statement, ast.IndexStmt):
            yield f"make the index {statement.idxname} in a migration with `-- step: concurrently`"
        elif isinstance(statement, _CHANGES_OF_ROWS):
            yield f"change the rows of {table} in a migration with `-- step: batches`"
        elif not (isinstance(statement, ast.SelectStmt) and statement.fromClause is None):
            yield f"{type(statement).__name__} is not known to be quick"


def _find_table(statement: Any) -> str:
    relation = getattr(statement, "relation", None)
    return relation.relname if relation is not None else ""


def _of_change(table: str, command: Any, is_contraction: bool) -> Iterator[str]:
    kind = command.subtype
    if kind == _Alter.AT_AddColumn:
        yield from _of_column(table, command.def_)
    elif kind == _Alter.AT_AddConstraint:
        if not command.def_.skip_validation and command.def_.indexname is None:
            yield f"add {table}.{command.def_.conname} as NOT VALID, or USING an index"
    elif kind == _Alter.AT_DropColumn:
        if not is_contraction:
            yield f"code of before may use {table}.{command.name}: remove the line `runs with code since`"
    elif kind == _Alter.AT_ValidateConstraint:
        yield f"validate {command.name} in a migration with `-- step: concurrently`"
    elif kind not in _QUICK_CHANGES:
        yield f"{_Alter(kind).name} of {table} is not known to be quick"


def _of_column(table: str, column: Any) -> Iterator[str]:
    constraints = {constraint.contype: constraint for constraint in column.constraints or ()}
    default = constraints.pop(enums.ConstrType.CONSTR_DEFAULT, None)
    if default is not None and not _is_constant(default.raw_expr):
        yield f"the default of {table}.{column.colname} is not a constant: every row would be written anew"
    constraints.pop(enums.ConstrType.CONSTR_NULL, None)
    if constraints.pop(enums.ConstrType.CONSTR_NOTNULL, None) and default is None:
        yield f"{table}.{column.colname} is NOT NULL without a default"
    if constraints:
        yield f"add the constraints of {table}.{column.colname} apart from it, as NOT VALID"


def _is_constant(value: Any) -> bool:
    if isinstance(value, ast.TypeCast):
        return _is_constant(value.arg)
    if isinstance(value, ast.FuncCall):
        return [name.sval for name in value.funcname or ()] == ["now"]
    return isinstance(value, ast.A_Const)


def _of_drop(statement: Any, is_contraction: bool) -> Iterator[str]:
    if statement.removeType == enums.ObjectType.OBJECT_INDEX:
        yield "drop an index in a migration with `-- step: concurrently`"
    elif not is_contraction:
        yield "code of before may use what is dropped: remove the line `runs with code since`"


def _of_concurrent(statement: Any) -> Iterator[str]:
    """Only what can be run again after half of it."""
    if isinstance(statement, ast.IndexStmt) and statement.concurrent and statement.if_not_exists:
        return
    if isinstance(statement, ast.DropStmt) and statement.concurrent and statement.missing_ok:
        return
    if isinstance(statement, ast.AlterTableStmt) and all(
        command.subtype == _Alter.AT_ValidateConstraint for command in statement.cmds or ()
    ):
        return
    yield "only CREATE INDEX CONCURRENTLY IF NOT EXISTS, DROP INDEX CONCURRENTLY IF EXISTS and VALIDATE CONSTRAINT"
