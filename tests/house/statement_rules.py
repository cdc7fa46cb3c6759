"""Rules about SQL statements, each a plain function that lists what breaks it."""

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Any, get_type_hints

import asyncpg
import msgspec

import sapa
from sapa.db import listing, sql
from sapa.db.listing import Listing
from sapa.db.pool import Connection
from sapa.db.sql import Statement

CONDITIONS = ("Index Cond", "Recheck Cond", "Filter")
_OF_COMPANY = re.compile(r"(?:\w+\.)?company_id = \$1").fullmatch
_INSERTED = re.compile(r"\bINSERT INTO (\w+)(?: AS \w+)? \((\w+)[^)]*\) (VALUES \(|SELECT )(\S+?)[,\s)]", re.IGNORECASE)
_INSERT = re.compile(r"\bINSERT INTO\b", re.IGNORECASE)

Statements = dict[str, Statement[Any]]


def name_statements() -> Statements:
    """Every declared statement as module.NAME; one that no module holds is named by its text."""
    names: dict[int, str] = {}
    for found in pkgutil.walk_packages(sapa.__path__, "sapa."):
        if found.name == "sapa.__main__":
            continue
        module = importlib.import_module(found.name)
        names |= {id(value): f"{found.name}.{name}" for name, value in vars(module).items() if _is_own(value, names)}
    made = {id(statement) for _, statement in listed_statements()}
    declared = [statement for statement in sql.REGISTRY if id(statement) not in made]
    return {names.get(id(statement), statement.text): statement for statement in declared}


def _is_own(value: object, names: Mapping[int, str]) -> bool:
    return isinstance(value, Statement) and id(value) not in names


def listed_statements() -> Iterator[tuple[str, Statement[Any]]]:
    """What each listing can put together: every filter alone and all of them, in every order."""
    for found in listing.REGISTRY:
        yield from _combinations(found)


def _combinations(found: Listing[Any]) -> Iterator[tuple[str, Statement[Any]]]:
    chosen = [(), *((name,) for name in found.filters), tuple(found.filters)]
    sorts = [f"{sort}:{direction}" for sort, direction in product(found.sorts, ("asc", "desc"))]
    yield f"share of {found.table}", found.owns_most_statement
    for sort in sorts:
        yield f"first page of {found.table} {sort}", found.first_page_statement(sort, 20)
        if found.cell is not None:
            yield f"cells of {found.table} {sort}", found.cells_statement(sort)
            yield f"first page of two cells of {found.table} {sort}", found.first_cells_statement(sort, 20, 2)
    for filters, sort in product(chosen, sorts):
        yield f"walk of {found.table} {filters} {sort}", found.walk_statement(filters, sort)
    for filters, sort in product(chosen[1:], sorts):
        for by_text in (False, True):
            name = f"gathering of {found.table} {filters} {sort} {by_text}"
            yield name, found.gather_statement(filters, sort, by_text)
    for filters in chosen[1:]:
        yield f"count of {found.table} {filters}", found.count_statement(filters)


def uncounted(statements: Statements, counters: Mapping[str, str]) -> list[str]:
    """Statements that add or remove rows of a counted table without its counter."""
    return [
        f"{name} changes {table} and does not count"
        for name, statement in statements.items()
        for table, counter in counters.items()
        if re.search(rf"\b(?:INSERT INTO|DELETE FROM) {table}\b", statement.text)
        and not re.search(rf"INSERT INTO counter_deltas .*'{counter}'", statement.text, re.DOTALL)
    ]


async def unfit_columns(db: Connection, statements: Statements) -> list[str]:
    """Statements that the schema refuses, and those whose columns are not their struct's fields in order."""
    found = []
    for name, statement in statements.items():
        try:
            prepared = await db.prepare(statement.text)
        except asyncpg.PostgresError as error:
            found.append(f"{name}: {error}")
            continue
        types = {attribute.name: attribute.type.name for attribute in prepared.get_attributes()}
        if statement.row is datetime and list(types.values()) != ["timestamptz"]:
            found.append(f"{name} gives {types} for one instant")
        if statement.row is None or not issubclass(statement.row, msgspec.Struct):
            continue
        if list(types) != list(statement.row.__struct_fields__):
            found.append(f"{name} gives {list(types)} for {statement.row.__name__}")
        instants = {field for field, type in get_type_hints(statement.row).items() if type in sql.INSTANT}
        if wrong := {field for field in instants & set(types) if types[field] != "timestamptz"}:
            found.append(f"{name} gives no instant for {wrong} of {statement.row.__name__}")
    return found


async def unconfined(db: Connection, statements: Statements, company_tables: set[str]) -> list[str]:
    """Statements that read or change rows of a company's table without the company as $1, by their very plan."""
    await db.execute("SET plan_cache_mode = force_generic_plan")
    found = []
    for name, statement in statements.items():
        if statement.crosses is None:
            scans = await _scans(db, statement.text)
            found += [
                f"{name} reads {table} of every company"
                for table, conditions in scans
                if table in company_tables and not any(map(is_of_company, conditions))
            ]
            found += [f"{name} inserts into {table} for another company" for table in foreign_inserts(statement.text)]
    return found


def foreign_inserts(text: str) -> list[str]:
    """Tables that a statement adds rows to whose company is not $1."""
    text = " ".join(text.split()).replace("( ", "(")
    inserts = _INSERTED.findall(text)
    assert len(inserts) == len(_INSERT.findall(text)), f"an INSERT in a form that this rule cannot read: {text}"
    return [table for table, column, _, value in inserts if (column, value) != ("company_id", "$1")]


async def _scans(db: Connection, text: str) -> list[tuple[str, list[str]]]:
    """Each table that the plan reads, with all conditions of that reading."""
    parameters = len((await db.prepare(text)).get_parameters())
    await db.execute(f"PREPARE looked_at AS {text}")
    try:
        given = f"({', '.join(['NULL'] * parameters)})" if parameters else ""
        plan = msgspec.json.decode(await db.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE looked_at{given}"))
    finally:
        await db.execute("DEALLOCATE looked_at")
    return [
        (node["Relation Name"], [node[kind] for kind in CONDITIONS if kind in node])
        for node in _nodes(plan[0]["Plan"])
        if "Relation Name" in node and node["Node Type"] != "ModifyTable"
    ]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from _nodes(inner)


def is_of_company(condition: str) -> bool:
    """Whether a plan's condition holds for rows of the company $1 only."""
    condition = _bare(_bare(condition).removesuffix(" IS TRUE"))
    if len(choices := _split(condition, " OR ")) > 1:
        return all(map(is_of_company, choices))
    if len(parts := _split(condition, " AND ")) > 1:
        return any(map(is_of_company, parts))
    return _OF_COMPANY(condition) is not None


def _bare(condition: str) -> str:
    while condition.startswith("(") and _close(condition) == len(condition) - 1:
        condition = condition[1:-1]
    return condition


def _close(condition: str) -> int:
    """Where the parenthesis closes that the condition opens with."""
    depth = 0
    for place, char in enumerate(condition):
        depth += (char == "(") - (char == ")")
        if not depth:
            return place
    return -1


def _split(condition: str, word: str) -> list[str]:
    """The parts between a word that stands outside all parentheses."""
    parts = [""]
    for piece in re.split(f"({word})", condition):
        if piece == word and parts[-1].count("(") == parts[-1].count(")"):
            parts.append("")
        else:
            parts[-1] += piece
    return parts
