"""Private parts of libraries that the product uses: they are named here, and the libraries have an upper bound."""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import sapa

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"

PRIVATE = {
    "aiohttp.connector.BaseConnector._factory": "makes connections that accept one response to each request",
    "aiohttp.connector.BaseConnector._loop": "is passed on to such a connection",
    "asyncpg.connection.Connection._check_open": "repeated in the fetches, which are every read",
    "asyncpg.connection.Connection._drop_global_statement_cache": "repeated in the fetches, which are every read",
    "asyncpg.connection.Connection._execute": "runs what is not prepared yet",
    "asyncpg.connection.Connection._protocol": "runs a prepared statement",
    "asyncpg.connection.Connection._query_loggers": "a traced call goes the library's own way",
    "asyncpg.connection.Connection._stmt_cache": "knows which statements are prepared",
    "asyncpg.connresource.ConnectionResource._check_conn_validity": "tells a lost connection from a bug of ours",
    "asyncpg.connresource.ConnectionResource._connection": "tells a lost connection from a bug of ours",
    "jinja2.compiler.CodeGenerator._output_child_pre": "escapes what templates write; Jinja's own generators define it",
}
"""Attributes of a base class whose names begin with an underscore, and what for."""

OF_OTHER_VALUES = {
    "jinja2: CodeGenerator._FinalizeInfo": "is what `_output_child_pre` is given",
    "asyncpg: connection._protocol": "has the codecs of a connection",
    "asyncpg: connection._transport": "is cut when the host of a connection says nothing",
    "prometheus_client: latency._buckets": "a batch of calls is added at once",
    "prometheus_client: latency._sum": "a batch of calls is added at once",
}
"""The same of values that are no object of a class of ours."""

UNDOCUMENTED = {
    "aiohttp.client_proto": "the protocol of a client's connection",
    "aiohttp.connector": "the connection that a request is sent on",
    "aiohttp.http": "the head of a response as the parser makes it",
    "aiohttp.http_exceptions": "the error of a response that is not HTTP",
}
"""Modules that their library does not describe, and what is used of them."""

# Described by Python, our own, and one that is named above.
NOT_OF_A_LIBRARY = {
    "os._exit", "AreaRow._fields", "parts._replace",
    "formats._localise", "formats._stamp", "_WIRE._shape",
    "super()._check_conn_validity",
}  # fmt: skip
DESCRIBED = {"aiohttp.abc", "aiohttp.web"}
MADE_BY_PYTHON = {"_abc_impl", "_is_protocol"}


def list_classes() -> Iterator[type]:
    for found in pkgutil.walk_packages(sapa.__path__, "sapa."):
        if found.name == "sapa.__main__":
            continue
        for value in vars(importlib.import_module(found.name)).values():
            if isinstance(value, type) and value.__module__ == found.name:
                yield value


def list_libraries() -> set[str]:
    """Those that are installed with the product, by the names they are imported by."""
    dependencies = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    return {re.split(r"[<>=\[;]", dependency)[0].replace("-", "_") for dependency in dependencies}


def find_private_uses(own: type, libraries: set[str]) -> set[str]:
    """Names with one underscore that the class reads from, or defines over, a library's class."""
    bases = [base for base in own.__mro__ if base.__module__.partition(".")[0] in libraries - {"msgspec"}]
    if not bases:
        return set()
    tree = ast.parse(textwrap.dedent(inspect.getsource(own)))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_self(node.value)}
    names = {name for name in {*used, *vars(own)} - MADE_BY_PYTHON if re.match(r"_(?!_)", name)}
    owners = {name: base for base in bases for name in names if _has(base, name)}  # the one that defines it first
    return {f"{base.__module__}.{base.__qualname__}.{name}" for name, base in owners.items()}


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _has(base: type, name: str) -> bool:
    """Whether the class itself defines the name, as a method or in its constructor."""
    if name in vars(base):
        return True
    constructor = vars(base).get("__init__")
    return inspect.isfunction(constructor) and bool(re.search(rf"\bself\.{name}\b", inspect.getsource(constructor)))


def find_submodules(library: str) -> set[str]:
    """The library's modules, besides itself, that the product imports from."""
    found = set()
    for file in Path(sapa.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{library}."):
                found.add(str(node.module))
    return found


def find_bound(library: str) -> str | None:
    """The version that is too new, if there is one."""
    for dependency in tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]:
        if re.split(r"[<>=\[;]", dependency)[0] == library and (bound := re.search(r"<([\d.]+)", dependency)):
            return bound[1]
    return None


def test_every_private_attribute_is_named() -> None:
    libraries = list_libraries()
    found = set().union(*(find_private_uses(own, libraries) for own in list_classes()))
    assert found == set(PRIVATE)


def find_private_uses_of_others() -> set[str]:
    """Names with one underscore that are read from other values than `self`."""
    texts = [file.read_text() for file in Path(sapa.__path__[0]).rglob("*.py")]
    trees = [ast.parse(text) for text in texts if re.search(r"(?<!self)(?<!cls)\._[A-Za-z]", text)]
    read = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {ast.unparse(node) for node in read if re.match(r"_(?!_)", node.attr) and not _is_self(node.value)}


def test_every_private_attribute_of_other_values_is_named() -> None:
    assert find_private_uses_of_others() - NOT_OF_A_LIBRARY == {use.partition(": ")[2] for use in OF_OTHER_VALUES}


def test_every_undocumented_module_is_named() -> None:
    assert find_submodules("aiohttp") - DESCRIBED == set(UNDOCUMENTED)


def test_libraries_with_private_uses_have_an_upper_bound() -> None:
    libraries = {re.split(r"[.:]", name)[0].replace("_", "-") for name in {*PRIVATE, *OF_OTHER_VALUES, *UNDOCUMENTED}}
    assert [library for library in libraries if find_bound(library) is None] == []


def test_a_private_use_is_seen() -> None:
    planted = importlib.import_module("tests.house.planted_private_use")
    assert find_private_uses(planted.Planted, {"aiohttp"}) == {"aiohttp.connector.BaseConnector._factory"}
