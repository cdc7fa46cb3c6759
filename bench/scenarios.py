"""What is asked of each server."""

from itertools import count

from msgspec import Struct

from bench.data import Data, SeededCompany
from bench.load import Load
from bench.names import FIRST_NAMES, LAST_NAMES
from bench.servers import Server

_runs = count(1)


class Scenario(Struct, frozen=True):
    name: str
    title: str
    company: SeededCompany
    rest: list[str]
    """What follows `/customers` in the path; several are asked for in turn."""
    seconds: int
    creates: bool = False

    def load(self, server: Server, seconds: int | None = None, connections: int = 16) -> Load:
        return Load(
            key=self.company.key,
            paths=[server.path(self.company, rest) for rest in self.rest],
            seconds=seconds or self.seconds,
            connections=connections,
            creates_with=f"run{next(_runs)}-" if self.creates else None,
        )


def build_scenarios(data: Data) -> list[Scenario]:
    many, few = data.many, data.few
    deep = many.customers // 20 // 10
    return [
        Scenario("get", "get one", few, [f"/{id}" for id in data.ids], 3),
        Scenario("list", f"list 20 of {few.customers:,}", few, [""], 3),
        Scenario("list_many", f"list 20 of {many.customers:,}", many, [""], 2),
        Scenario("search", f"search a name in {many.customers:,}", many, _searches(), 2),
        Scenario("deep", f"page {deep:,} of {many.customers:,}", many, [f"?page={deep}"], 2),
        Scenario("create", "create", data.fresh, [""], 2, creates=True),
    ]


def _searches() -> list[str]:
    """Full names: each is borne by about one customer in twelve thousand."""
    pairs = zip(FIRST_NAMES[3::5], LAST_NAMES[2::6], strict=False)
    return [f"?search={first}+{last}".lower() for first, last in pairs]
