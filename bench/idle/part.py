"""An installation that has nothing to do: what it asks its database, and what it costs."""

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGTERM

import asyncpg
import psutil
from msgspec import Struct

from bench.findings import Findings, Table, at_most, ratios, spread
from bench.ground import open_ground, plain_environment
from bench.idle.sleepers import add_sleepers
from bench.say import say
from bench.servers import cpu_seconds, end, free_port, proportional_megabytes, wait_for_answer
from sapa.runtime.embedded import EmbeddedServer
from sapa.runtime.processes import spawn

STATEMENT = re.compile(rb"LOG:  (?:statement|execute [^:]*): ")


class Size(Struct, frozen=True):
    few: int
    many: int
    rounds: int
    seconds: float
    """Of a round: two of the slowest rhythm that an idle worker has."""
    settling: float
    """After the start, until nothing of it is left: connections that it needed are closed in the second minute."""


FULL = Size(few=10, many=10_000, rounds=6, seconds=60, settling=130)
QUICK = Size(few=10, many=200, rounds=1, seconds=30, settling=130)


class Idleness(Struct, frozen=True):
    """Of one round."""

    statements_per_second: float
    cpu_percent: float
    worker_megabytes: float


class Served(Struct, frozen=True):
    server: EmbeddedServer
    processes: list[psutil.Process]


async def measure_idle(folder: Path, is_quick: bool) -> Findings:
    """Three installations, beside each other because none of them has anything to do."""
    size = QUICK if is_quick else FULL
    sizes = {"few": size.few, "further": size.few, "many": size.many}
    for name, companies in sizes.items():
        say(f"making {companies:,} companies that sleep")
        (folder / name).mkdir()
        async with open_ground(folder / name) as ground:
            await add_sleepers(ground, companies)
    async with _serve(folder / "few", 0) as few:
        await asyncio.sleep(size.settling)
        # Alone: processes of several installations would share the memory of their libraries.
        product = sum(map(proportional_megabytes, _list_all(few.processes)))
        async with _serve(folder / "further", 1) as further, _serve(folder / "many", 0) as many:
            await asyncio.sleep(size.settling)
            rounds = await asyncio.gather(*(_measure(each, size) for each in (few, further, many)))
    found = dict(zip(sizes, rounds, strict=True))
    statements = {name: [one.statements_per_second for one in each] for name, each in found.items()}
    added = [more - alone for more, alone in zip(statements["further"], statements["few"], strict=True)]
    cpu = [one.cpu_percent for one in found["few"]]
    memory = {name: [one.worker_megabytes for one in each] for name, each in found.items()}
    asleep = f"with {size.many:,} companies asleep against {size.few}"
    verdicts = [
        at_most(4, "/s", "statements of an idle installation", spread(statements["few"])),
        at_most(1, "/s", "statements of a further worker", spread(added)),
        at_most(0.5, " %", "CPU of an idle installation, of one core", spread(cpu)),
        at_most(235, " MB", "memory (PSS) of the idle product", spread([product])),
        at_most(1.2, "×", f"statements {asleep}", ratios(statements["many"], statements["few"])),
        at_most(1.2, "×", f"worker's memory {asleep}", ratios(memory["many"], memory["few"])),
    ]
    names = [f"{size.few} companies", f"{size.few} companies, two workers", f"{size.many:,} companies"]
    return Findings(verdicts, [_table(dict(zip(names, rounds, strict=True)))], found)


def _table(rows: dict[str, list[Idleness]]) -> Table:
    columns = ["idle", "statements/s", "CPU, % of a core", "worker's PSS, MB"]
    return Table(columns, [[name, *_figures(rounds)] for name, rounds in rows.items()])


def _figures(rounds: Sequence[Idleness]) -> list[str]:
    fields = Idleness.__struct_fields__
    return [f"{spread([getattr(one, field) for one in rounds]).median:.2f}" for field in fields]


async def _measure(served: Served, size: Size) -> list[Idleness]:
    rounds = []
    for _ in range(size.rounds):
        cpu = await _measure_cpu(served.processes, size.seconds)
        statements = await _count_statements(served.server, size.seconds)
        worker = next(one for one in _list_all(served.processes) if "worker" in one.cmdline())
        rounds.append(Idleness(statements / size.seconds, cpu / size.seconds * 100, proportional_megabytes(worker)))
    return rounds


@asynccontextmanager
async def _serve(folder: Path, further_workers: int) -> AsyncIterator[Served]:
    """`sapa serve` with one API process and its worker, and perhaps more workers."""
    port, data, log = free_port(), folder / "data", folder / "serve.log"
    environment = plain_environment() | {"SAPA_PROCESSES": "1"}
    with log.open("wb") as output:
        command = [sys.executable, "-m", "sapa", "serve", "--port", str(port), "--data", str(data)]
        child = spawn(command, SIGTERM, env=environment, output=output.fileno())
        children = [child]
        try:
            await wait_for_answer(f"http://127.0.0.1:{port}/readyz", child, log, 200)
            server = EmbeddedServer(data)
            own = {"SAPA_DATABASE_URL": server.app_url, "SAPA_SECRET_KEY": server.secret_key}
            for _ in range(further_workers):
                command = [sys.executable, "-m", "sapa", "worker"]
                children.insert(0, spawn(command, SIGTERM, env=environment | own, output=output.fileno()))
            yield Served(server, [psutil.Process(each.pid) for each in children])
        finally:
            for each in children:
                await end(each)


def _list_all(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    return [one for process in processes for one in [process, *process.children(recursive=True)]]


async def _measure_cpu(processes: Sequence[psutil.Process], seconds: float) -> float:
    before, started = sum(map(cpu_seconds, processes)), time.monotonic()
    await asyncio.sleep(seconds)
    return (sum(map(cpu_seconds, processes)) - before) / (time.monotonic() - started) * seconds


async def _count_statements(server: EmbeddedServer, seconds: float) -> int:
    """In PostgreSQL's own log; not while CPU is measured, because logging costs some."""
    await _log_statements(server, "all")
    start = server.log.stat().st_size
    await asyncio.sleep(seconds)
    with server.log.open("rb") as log:
        log.seek(start)
        written = log.read()
    await _log_statements(server, "none")
    return len(STATEMENT.findall(written))


async def _log_statements(server: EmbeddedServer, which: str) -> None:
    role = f"postgres:{server.secrets.superuser}"
    superuser = await asyncpg.connect(server.owner_url.replace(f"sapa_owner:{server.secrets.owner}", role))
    try:
        await superuser.execute(f"ALTER SYSTEM SET log_statement = '{which}'")
        await superuser.execute("SELECT pg_reload_conf()")
    finally:
        await superuser.close()
    await asyncio.sleep(1)
