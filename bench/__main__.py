"""`python -m bench`: measures Sapa part by part, each on a database of its own, and prints tables of ratios."""

import argparse
import asyncio
import signal
from collections.abc import Sequence

from bench.ground import prepare_folder
from bench.machine import Machine, describe_machine
from bench.parts import PARTS, Part
from bench.report import present
from bench.say import say
from sapa.wiring import install


async def bench(parts: Sequence[Part], is_quick: bool, publish: bool) -> None:
    install()
    machine = describe_machine()
    for part in parts:
        await run_part(part, machine, is_quick, publish)


async def run_part(part: Part, machine: Machine, is_quick: bool, publish: bool) -> None:
    say(f"{part.name}: {part.what}")
    with prepare_folder(part.name) as folder:
        findings = await part.run(folder, is_quick)
    present(part.name, machine, findings, is_quick, publish)


async def run_until_told(parts: Sequence[Part], is_quick: bool, publish: bool) -> None:
    """SIGTERM ends a run as Ctrl-C does: everything it started is stopped first."""
    work = asyncio.create_task(bench(parts, is_quick, publish))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    await work


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    known = {part.name: part for part in PARTS}
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(known)}; all of them if none is named")
    parser.add_argument("--quick", action="store_true", help="little data and few rounds: to try it, not to quote it")
    parser.add_argument("--publish", action="store_true", help="put figures and charts into docs/performance.md")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(known):
        parser.error(f"there is no part called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if given.quick and given.publish:
        parser.error("figures of a quick run are not for publishing")
    chosen = [known[name] for name in given.parts] or PARTS
    try:
        asyncio.run(run_until_told(chosen, given.quick, given.publish))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise SystemExit("stopped; nothing was left running") from None


if __name__ == "__main__":
    main()
