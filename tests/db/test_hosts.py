"""An address with several hosts: one that is silent costs little, and the last primary is asked first."""

import asyncio

import pytest

from sapa.db import hosts
from sapa.db.hosts import NoHostAccepts, open_first, split_hosts


class Network:
    """Hosts that accept a session, refuse it, or say nothing."""

    def __init__(self, *, accept: set[str], silent: set[str]) -> None:
        self.accept = accept
        self.silent = silent
        self.asked: list[str] = []
        self.dropped: list[str] = []

    async def open(self, url: str) -> str:
        name = url.rpartition("@")[2].partition(":")[0]
        self.asked.append(name)
        if name in self.silent:
            await asyncio.Event().wait()
        if name not in self.accept:
            raise ConnectionRefusedError("refused")
        return name

    async def reach(self, url: str) -> str:
        return await open_first(url, self.open, self.dropped.append)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """Of its own for each test: what accepted a session is remembered by address."""
    return f"postgresql://sapa@one:1,two:2,three:3/{request.node.name}"


def test_each_host_has_an_address_with_the_same_user_and_database() -> None:
    assert split_hosts("postgresql://sapa:pw@one:1,two/shop?a=b") == [
        "postgresql://sapa:pw@one:1/shop?a=b",
        "postgresql://sapa:pw@two/shop?a=b",
    ]


def test_hosts_may_be_named_after_the_path_as_well() -> None:
    assert split_hosts("postgresql://sapa:pw@/shop?host=one,two&port=1,2&sslmode=require") == [
        "postgresql://sapa:pw@/shop?host=one&port=1&sslmode=require",
        "postgresql://sapa:pw@/shop?host=two&port=2&sslmode=require",
    ]
    assert split_hosts("postgresql:///shop?host=one,two") == [
        "postgresql:///shop?host=one",
        "postgresql:///shop?host=two",
    ]
    assert split_hosts("postgresql:///shop?host=one,two&port=7") == [
        "postgresql:///shop?host=one&port=7",
        "postgresql:///shop?host=two&port=7",
    ]
    assert split_hosts("postgresql:///shop?host=/run/postgresql") == ["postgresql:///shop?host=/run/postgresql"]


async def test_a_silent_host_does_not_keep_others_from_being_asked(url: str) -> None:
    network = Network(accept={"three"}, silent={"one", "two"})
    assert await network.reach(url) == "three"
    assert network.asked == ["one", "two", "three"]


async def test_the_host_that_accepted_the_last_session_is_asked_first(url: str) -> None:
    network = Network(accept={"two"}, silent=set())
    assert [await network.reach(url), await network.reach(url)] == ["two", "two"]
    assert network.asked == ["one", "two", "two"]


async def test_the_last_one_is_left_when_it_accepts_no_more(url: str) -> None:
    network = Network(accept={"two"}, silent=set())
    await network.reach(url)
    network.accept, network.silent = {"three"}, {"two"}
    assert await network.reach(url) == "three"
    assert await network.reach(url) == "three"
    assert network.asked[-1] == "three"


async def test_what_each_host_said_is_told_when_none_accepts(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "HOST_SECONDS", 0.3)
    network = Network(accept=set(), silent={"two"})
    with pytest.raises(NoHostAccepts, match=r"one:1: refused; three:3: refused; two:2: no answer within"):
        await network.reach(url)


async def test_hosts_that_are_named_after_the_path_are_named_in_the_error() -> None:
    network = Network(accept=set(), silent=set())
    with pytest.raises(NoHostAccepts, match=r"one: refused; two: refused"):
        await network.reach("postgresql://sapa@/shop?host=one,two")


async def test_a_session_that_came_too_late_is_dropped(url: str) -> None:
    async def open_session(host: str) -> str:
        if "@one" not in host:
            return "two"
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:  # the server answered at the same moment
            return "one"
        raise AssertionError

    dropped: list[str] = []
    assert await open_first(url, open_session, dropped.append) == "two"
    await asyncio.sleep(0.01)
    assert dropped == ["one"]
