import pytest

from tests.house import source_rules as rules
from tests.house.source_tree import Module, build_module, read_modules

MAY_RUN_BARE_SQL = {
    "sapa.db.migrations",  # what makes the tables that statements are checked against
    "sapa.db.migrations.steps",  # the same
    "sapa.db.distribution",  # spreads these tables over machines
    "sapa.backups.queries",  # reads and writes whatever tables the catalogue lists
    "sapa.cli.database",  # looks who is connected
    "sapa.cli.doctor",  # looks at the server, not at rows
    "sapa.db.pool",  # notifies listeners
    "sapa.db.hub",  # the listener's sign of life
    "sapa.db.wakeups",  # puts the declared statements of all queues into one
}

MAY_IMPORT_QUERIES: dict[tuple[str, str], str] = {}
"""(importing module, queries), each with its reason."""

MAY_DECLARE_STATEMENTS = {
    "sapa.db.listing": "puts its statements together from the declaration of a list",
    "sapa.events": "a room of one file, whose two statements are read with the one function that runs them",
}


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return read_modules()


def planted(**texts: str) -> dict[str, Module]:
    """A small product: module names with a double underscore for a dot."""
    names = {f"sapa.{name.replace('__', '.')}": text for name, text in texts.items()}
    return {name: build_module(name, text) for name, text in names.items()}


def test_a_rooms_queries_are_its_own(modules: dict[str, Module]) -> None:
    assert rules.foreign_queries(modules, set(MAY_IMPORT_QUERIES)) == []


@pytest.mark.parametrize(
    "texts",
    [
        {"orders__actions": "from sapa.customers import queries", "customers__queries": ""},
        {"orders__actions": "from sapa.customers.queries import GET", "customers__queries": "GET = 1"},
        {"orders__actions": "from ..customers import queries", "customers__queries": ""},
        {"shipping__bookings__actions": "import sapa.shipping.quotes.queries", "shipping__quotes__queries": ""},
        {"console__pages": "from sapa.people import queries", "people__queries": ""},
    ],
)
def test_another_rooms_queries_are_seen(texts: dict[str, str]) -> None:
    assert len(rules.foreign_queries(planted(**texts), set())) == 1


def test_a_room_may_use_its_own_queries() -> None:
    tree = planted(
        orders__actions="from sapa.orders import queries\nfrom sapa.customers import actions",
        orders__queries="",
        customers__actions="from sapa.customers import queries",
        customers__queries="",
    )
    assert rules.foreign_queries(tree, set()) == []


def test_no_room_gives_its_queries_out(modules: dict[str, Module]) -> None:
    assert rules.query_aliases(modules) == []


@pytest.mark.parametrize(
    "text",
    [
        "from sapa.orders import queries\nfind = queries.find",
        "from sapa.orders import queries as orders\nfind: Find = orders.find",
        "import sapa.orders.queries\nfind = sapa.orders.queries.find",
        "from sapa.orders.queries import find_order\nfind = find_order",
        "from . import queries\nfind = queries.find",
    ],
)
def test_a_query_under_another_name_is_seen(text: str) -> None:
    assert len(rules.query_aliases(planted(orders__actions=text))) == 1


def test_a_function_over_a_query_is_fine() -> None:
    text = "from sapa.orders import queries\nasync def find(db):\n    return await queries.find(db)\nLIMIT = 5\n"
    assert rules.query_aliases(planted(orders__actions=text, orders__queries="A = 1\nB = A\n")) == []


def test_statements_stand_in_queries(modules: dict[str, Module]) -> None:
    assert rules.misplaced_statements(modules, set(MAY_DECLARE_STATEMENTS)) == []


def test_a_misplaced_statement_is_seen() -> None:
    tree = planted(orders__actions='GET = sql("SELECT 1")', orders__queries='GET = sql("SELECT 1")')
    assert rules.misplaced_statements(tree, set()) == [
        "sapa.orders.actions:1 declares a statement outside of queries.py"
    ]


def test_prefixes_are_contracts(modules: dict[str, Module]) -> None:
    assert rules.broken_prefixes(modules) == []


def test_a_broken_prefix_is_seen() -> None:
    tree = planted(
        orders__queries="""
def find_order() -> Order: ...
def find_total() -> int | None: ...
async def get_order() -> Order | str | None: ...
async def get_pair() -> tuple[Order | None, int]: ...
async def lock_order() -> Order | None: ...
async def lock_orders() -> None: ...
async def build_order() -> Order: ...
async def _parse_order() -> Order: ...
def parse_order() -> Order | None: ...
"""
    )
    assert [line.split()[0] for line in rules.broken_prefixes(tree)] == [
        "sapa.orders.queries.find_order:2",
        "sapa.orders.queries.get_order:4",
        "sapa.orders.queries.lock_order:6",
        "sapa.orders.queries.build_order:8",
        "sapa.orders.queries._parse_order:9",
    ]


def test_no_module_imports_itself_by_way_of_others(modules: dict[str, Module]) -> None:
    assert rules.import_cycles(modules) == []


def test_a_cycle_is_seen() -> None:
    tree = planted(a="from sapa import b", b="import sapa.c", c="from sapa.a import x", d="from sapa import a")
    assert len(rules.import_cycles(tree)) == 3


def test_no_import_hides_in_a_function(modules: dict[str, Module]) -> None:
    assert rules.hidden_imports(modules) == []


def test_an_import_in_a_function_is_seen() -> None:
    tree = planted(a="class A:\n    async def f(self):\n        if 1:\n            from sapa import b\n", b="")
    assert rules.hidden_imports(tree) == ["sapa.a.f imports inside a function"]


def test_settings_import_nothing_of_ours(modules: dict[str, Module]) -> None:
    assert rules.settings_imports(modules) == []
    assert rules.settings_imports(planted(settings="from sapa.values.ids import new_id", values__ids="")) == [
        "settings imports sapa.values.ids"
    ]


def test_every_module_is_named_for_what_it_is(modules: dict[str, Module]) -> None:
    assert rules.empty_names(modules) == []


@pytest.mark.parametrize("name", ["sapa.utils", "sapa.orders.helpers", "sapa.core.types", "sapa.http.base"])
def test_an_empty_name_is_seen(name: str) -> None:
    assert rules.empty_names([name, "sapa.customers.api"]) == [name]


def test_files_and_functions_are_short(modules: dict[str, Module]) -> None:
    assert rules.wrong_sizes(modules) == []


def function(name: str, lines: int) -> str:
    return f"def {name}():\n" + "    x = 1\n" * (lines - 1)


def test_a_long_file_is_seen() -> None:
    assert rules.wrong_sizes(planted(a="x = 1\n" * 500)) == []
    assert rules.wrong_sizes(planted(a="x = 1\n" * 501)) == ["sapa.a has 501 lines"]


def test_too_many_long_functions_are_seen() -> None:
    short = {f"m{n}": function("f", 5) for n in range(40)}
    assert rules.wrong_sizes(planted(**short, a=function("long", 51))) == []
    found = rules.wrong_sizes(planted(**dict(list(short.items())[:39]), a=function("long", 51)))
    assert found == ["1 of 40 functions are over 50 lines: sapa.a.long"]


def test_a_long_median_is_seen() -> None:
    assert rules.wrong_sizes(planted(a=function("f", 9))) == []
    assert rules.wrong_sizes(planted(a=function("f", 10))) == ["the median function has 10 lines"]


def test_only_actions_and_jobs_emit_and_only_in_their_transaction(modules: dict[str, Module]) -> None:
    assert rules.wrong_emits(modules) == []


@pytest.mark.parametrize("name", ["customers__api", "customers__queries", "customers__types", "http__edge", "app"])
def test_an_emit_elsewhere_is_seen(name: str) -> None:
    text = "async def f(tx, company):\n    await emit(tx, company, 1)\n"
    assert len(rules.wrong_emits(planted(**{name: text}))) == 1
    assert rules.wrong_emits(planted(customers__actions=text, orders__refund=text)) == []


@pytest.mark.parametrize("given", ["database", "call.db", "await database.connection()"])
def test_an_emit_outside_the_given_transaction_is_seen(given: str) -> None:
    text = f"async def f(tx, database, call):\n    await events.emit({given}, 1, 2)\n"
    assert len(rules.wrong_emits(planted(customers__actions=text))) == 1


def test_every_statement_is_declared(modules: dict[str, Module]) -> None:
    assert rules.bare_statements(modules, MAY_RUN_BARE_SQL) == []


def test_a_bare_statement_is_seen() -> None:
    text = 'async def f(db, name):\n    await db.fetch("SELECT 1")\n    await db.execute(f"DROP TABLE {name}")\n'
    assert len(rules.bare_statements(planted(customers__queries=text), MAY_RUN_BARE_SQL)) == 2
    declared = "async def f(db):\n    await db.fetch(EXPIRE.text)\n"
    assert rules.bare_statements(planted(customers__queries=declared), MAY_RUN_BARE_SQL) == []


def test_every_setting_is_described(modules: dict[str, Module]) -> None:
    assert rules.undescribed_settings(modules["sapa.settings"]) == []


@pytest.mark.parametrize(
    "text",
    [
        "class A(Struct):\n    port: int\n",
        "class A(Struct):\n    port: int\n    host: str\n    'SAPA_HOST: where to listen.'\n",
        "class A(Struct):\n    port: int\n    'The port.'\n",
        "x = environ['SAPA_PORT']\n",
    ],
)
def test_a_setting_without_a_description_is_seen(text: str) -> None:
    assert len(rules.undescribed_settings(build_module("sapa.settings", text))) == 1
