"""Rules about the source, each a plain function that lists what breaks it."""

import ast
from collections.abc import Iterable
from statistics import median

from tests.house.source_tree import Function, Module, list_imports, reachable

INFRASTRUCTURE = {"http", "db", "outbound", "work", "cli", "sandbox"}
"""Packages that are no domains. All others are. The sandbox plays the parties outside, and knows whom it plays for."""

DOMAIN_FREE = {"http", "db", "outbound", "settings"}
LAYERS = ["types", "queries", "actions", "api"]
OPEN_TO_OTHER_DOMAINS = {
    "types", "actions", "stock", "bulk", "carried", "deliveries", "trial", "accounts", "samples", "sends",
    "conversation", "connecting", "connection_types", "connections", "mail", "bookings", "tracking", "states",
    "reconciliation",
}  # fmt: skip
FORBIDDEN_NAMES = {"utils", "helpers", "common", "core", "manager", "service", "base"}
SILENT = {"types", "queries", "api"}
"""Modules of a domain that may not announce anything: the rest are its verbs and jobs."""

MOST_LINES = 400
LONG_FUNCTION = 50
MOST_LONG_SHARE = 0.025
MEDIAN_BELOW = 10

Modules = dict[str, Module]


def wrong_arrows(modules: Modules) -> list[str]:
    """api → actions → queries → types, also through a module between them; other domains by types and actions only."""
    domains = {module.parts[0] for module in modules.values() if len(module.parts) > 1} - INFRASTRUCTURE
    graph = build_graph(modules)
    found = []
    for name, imported in graph.items():
        here = modules[name].parts[0] if modules[name].parts else ""
        for other in imported:
            there, *rest = modules[other].parts or [""]
            if there not in domains or there == here:
                continue
            if here in DOMAIN_FREE:
                found.append(f"{name} imports the domain module {other}")
            if here in domains and not (rest and rest[0] in OPEN_TO_OTHER_DOMAINS):
                found.append(f"{name} imports {other} of another domain")
    return found + [climb for domain in sorted(domains) for climb in _climbs(domain, modules, graph)]


def _climbs(domain: str, modules: Modules, graph: dict[str, set[str]]) -> list[str]:
    """Arrows from a lower layer of a domain to a higher one, and from anywhere to its api."""
    inside = {name for name in modules if modules[name].parts[:1] == [domain]}
    within = {name: graph[name] & inside for name in inside}
    found = []
    for name in sorted(inside):
        layer = _layer(modules[name])
        above = LAYERS[layer + 1 :] if layer is not None else ["api"]
        found += [
            f"{name} reaches up to {other}"
            for other in sorted(reachable(name, within))
            if modules[other].parts[-1] in above
        ]
    return found


def _layer(module: Module) -> int | None:
    return LAYERS.index(module.parts[-1]) if module.parts[-1] in LAYERS else None


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
        if (lines := len(module.text.splitlines())) > MOST_LINES
    ]
    lengths = {
        f"{name}.{function.name}": _lines(function) for name, module in modules.items() for function in module.functions
    }
    long = sorted(name for name, lines in lengths.items() if lines > LONG_FUNCTION)
    if len(long) >= MOST_LONG_SHARE * len(lengths) and long:
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
        calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call) and _called(node) == "emit"]
        is_verb = len(module.parts) > 1 and module.parts[0] not in INFRASTRUCTURE and module.parts[-1] not in SILENT
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
        for node in ast.walk(module.tree)
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
    constants = (node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant))
    read = {text for text in constants if isinstance(text, str) and text.isupper() and text.startswith("SAPA_")}
    return found + [f"{variable} is read and not described" for variable in sorted(read - described)]
