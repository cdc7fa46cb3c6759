"""Rules about the source, each a plain function that lists what breaks it."""

import ast
from collections.abc import Iterable
from statistics import median

from tests.house.source_tree import Function, Module, list_imports, reachable

MECHANISMS = {"http", "db", "outbound", "work", "values", "runtime", "cli", "sandbox"}
"""Packages that are no rooms of the product. The sandbox plays the parties outside, and knows whom it plays for."""

FORBIDDEN_NAMES = {"utils", "helpers", "common", "core", "manager", "service", "base"}
SILENT = {"types", "queries", "api"}
"""Modules of a room that may not announce anything: the rest are its verbs and jobs."""

MAX_LINES = 500
LONG_FUNCTION = 50
MAX_LONG_SHARE = 0.025
MEDIAN_BELOW = 10

Modules = dict[str, Module]


def foreign_queries(modules: Modules, allowed: set[tuple[str, str]]) -> list[str]:
    """A room's SQL is its own: others come through its types and actions. Which way arrows point between rooms and
    between the files of a room is a contract in .importlinter."""
    return [
        f"{name} imports {other} of another room"
        for name, imported in build_graph(modules).items()
        for other in sorted(imported)
        if other.endswith(".queries") and _room(other) != _room(name) and (name, other) not in allowed
    ]


def query_aliases(modules: Modules) -> list[str]:
    """A query under another name is still a query: other rooms get a function that says what it is for."""
    return [
        f"{name}:{node.lineno} gives out {ast.unparse(node.value)}"
        for name, module in modules.items()
        if not name.endswith(".queries") and (names := _query_names(module))
        for node in module.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _root(node.value) in names
    ]


def _query_names(module: Module) -> set[str]:
    """The names under which a module knows queries, or what it imports from them."""
    found = set()
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name for alias in node.names if alias.name.endswith(".queries")}
        if isinstance(node, ast.ImportFrom):
            is_queries = (node.module or "").rpartition(".")[2] == "queries"
            found |= {alias.asname or alias.name for alias in node.names if is_queries or alias.name == "queries"}
    return found


def _root(value: ast.expr) -> str:
    """`queries` of `queries.find`, `sapa.orders.queries` of `sapa.orders.queries.find`, `find` of `find`."""
    text = ast.unparse(value) if isinstance(value, ast.Name | ast.Attribute) else ""
    return text.rpartition(".")[0] or text


def misplaced_statements(modules: Modules, allowed: set[str]) -> list[str]:
    """A statement is declared in the queries of its room."""
    return [
        f"{name}:{node.lineno} declares a statement outside of queries.py"
        for name, module in modules.items()
        if not name.endswith(".queries") and name not in allowed
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sql"
    ]


def _room(name: str) -> str:
    return name.rpartition(".")[0]


def build_graph(modules: Modules) -> dict[str, set[str]]:
    return {name: list_imports(module, modules) for name, module in modules.items()}


def import_cycles(modules: Modules) -> list[str]:
    graph = build_graph(modules)
    return [f"{name} imports itself by way of others" for name in sorted(graph) if name in reachable(name, graph)]


def hidden_imports(modules: Modules) -> list[str]:
    return [
        f"{name}.{function.name} imports inside a function"
        for name, module in modules.items()
        for function in module.functions
        if any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(function))
    ]


def settings_imports(modules: Modules) -> list[str]:
    imported = list_imports(modules["sapa.settings"], modules)
    return [f"settings imports {other}" for other in sorted(imported)]


def empty_names(modules: Iterable[str]) -> list[str]:
    """Names that say nothing about the product."""
    return [name for name in modules if FORBIDDEN_NAMES & set(name.split("."))]


def wrong_sizes(modules: Modules) -> list[str]:
    found = [
        f"{name} has {lines} lines"
        for name, module in modules.items()
        if (lines := len(module.text.splitlines())) > MAX_LINES
    ]
    lengths = {
        f"{name}.{function.name}": _lines(function) for name, module in modules.items() for function in module.functions
    }
    long = sorted(name for name, lines in lengths.items() if lines > LONG_FUNCTION)
    if len(long) >= MAX_LONG_SHARE * len(lengths) and long:
        found.append(f"{len(long)} of {len(lengths)} functions are over {LONG_FUNCTION} lines: {', '.join(long)}")
    if lengths and (middle := median(lengths.values())) >= MEDIAN_BELOW:
        found.append(f"the median function has {middle} lines")
    return found


def _lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def wrong_emits(modules: Modules) -> list[str]:
    """Only a domain's verbs and jobs announce, and they do it with the transaction that they were given."""
    found = []
    for name, module in modules.items():
        calls = [node for node in module.nodes if isinstance(node, ast.Call) and _called(node) == "emit"]
        is_verb = len(module.parts) > 1 and module.parts[0] not in MECHANISMS and module.parts[-1] not in SILENT
        if calls and not is_verb:
            found.append(f"{name} emits, which only actions and jobs may")
        for call in calls:
            given = call.args[0] if call.args else None
            if not (isinstance(given, ast.Name) and given.id == "tx"):
                found.append(f"{name}:{call.lineno} emits outside the transaction it was given")
    return found


def bare_statements(modules: Modules, allowed: set[str]) -> list[str]:
    """SQL that is handed to a connection as text goes past sql() and its checks."""
    runs = {"fetch", "fetchrow", "fetchval", "execute", "executemany", "cursor"}
    return [
        f"{name}:{node.lineno} runs SQL that is not declared with sql()"
        for name, module in modules.items()
        if name not in allowed
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in runs
        if node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr | ast.BinOp)
    ]


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def undescribed_settings(module: Module) -> list[str]:
    """Fields of settings without a text of their own, and variables that no such text names."""
    described: set[str] = set()
    found = []
    for owner in (node for node in module.tree.body if isinstance(node, ast.ClassDef)):
        for field, after in zip(owner.body, [*owner.body[1:], ast.Pass()], strict=True):
            if not isinstance(field, ast.AnnAssign) or ast.unparse(field.annotation).endswith("Settings"):
                continue
            text = ast.literal_eval(after.value) if isinstance(after, ast.Expr) else ""
            variable, _, meaning = str(text).partition(": ")
            described.add(variable)
            if not variable.startswith("SAPA_") or not meaning.endswith("."):
                found.append(f"{owner.name}.{ast.unparse(field.target)} is not described")
    constants = (node.value for node in module.nodes if isinstance(node, ast.Constant))
    read = {text for text in constants if isinstance(text, str) and text.isupper() and text.startswith("SAPA_")}
    return found + [f"{variable} is read and not described" for variable in sorted(read - described)]


def broken_prefixes(modules: Modules) -> list[str]:
    """The prefix is the contract: `find_` may return None, `get_` and `lock_` return or raise, `build_` and `parse_`
    are pure, so they wait for nothing."""
    return [
        f"{name}.{function.name}:{function.lineno} {reason}"
        for name, module in modules.items()
        for function in module.functions
        if (reason := _find_broken_prefix(function)) is not None
    ]


def _find_broken_prefix(function: Function) -> str | None:
    prefix, _, rest = function.name.lstrip("_").partition("_")
    if not rest or rest.startswith("or_"):
        return None  # a bare verb, or find_or_create
    returned = ast.unparse(function.returns) if function.returns else "None"
    if prefix == "find" and "None" not in returned:
        return "never returns None: use get_, list_ or another verb"
    if prefix in {"get", "lock"} and "None" in _list_alternatives(function.returns):
        return "may return None: use find_"
    if prefix in {"build", "parse"} and isinstance(function, ast.AsyncFunctionDef):
        return "is async, so it is not pure: use another verb"
    return None


def _list_alternatives(annotation: ast.expr | None) -> list[str]:
    """The members of a union; a function that only returns None has none."""
    if not isinstance(annotation, ast.BinOp):
        return []
    return [ast.unparse(side) for side in (annotation.left, annotation.right)] + _list_alternatives(annotation.left)
