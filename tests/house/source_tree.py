"""The product's source as the house rules see it: modules, what they import, the functions they hold."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

PACKAGE = "sapa"
SOURCE = Path(__file__).parents[2] / "src" / PACKAGE

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(Struct, frozen=True):
    name: str
    text: str
    tree: ast.Module
    nodes: list[ast.AST]
    """All of the tree: rules look through it again and again."""
    is_package: bool = False

    @property
    def parts(self) -> list[str]:
        """The name without the product's own: ["customers", "api"]."""
        return self.name.split(".")[1:]

    @property
    def functions(self) -> list[Function]:
        return [node for node in self.nodes if isinstance(node, Function)]


def build_module(name: str, text: str, is_package: bool = False) -> Module:
    tree = ast.parse(text)
    return Module(name, text, tree, list(ast.walk(tree)), is_package)


@cache
def read_modules(folder: Path = SOURCE) -> dict[str, Module]:
    """Every module below the folder, by its full name."""
    gc.disable()
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(folder).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = build_module(name, path.read_text(), is_package)
    gc.freeze()  # millions of nodes stay to the end: looking through them for garbage takes longer than parsing
    gc.enable()
    return found


def list_imports(module: Module, modules: dict[str, Module]) -> set[str]:
    """The product's modules that a module imports, wherever in it."""
    found = {name for node in module.nodes for name in _imported(node, module, modules)}
    return {name for name in found if name in modules} - {module.name}


def _imported(node: ast.AST, module: Module, modules: dict[str, Module]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        source = _source(node, module)
        for alias in node.names:
            inner = f"{source}.{alias.name}"
            yield inner if inner in modules else source


def _source(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".")[: None if module.is_package and node.level == 1 else -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    """All that can be come to from a module along the arrows."""
    seen: set[str] = set()
    waiting = list(graph.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph.get(name, ())
    return seen
