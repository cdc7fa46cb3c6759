"""Messages: sends beside a bare process, their cost with callbacks, what channels report, and the history."""

from pathlib import Path

from msgspec import Struct

from bench.api.load import Measurement
from bench.findings import Findings
from bench.ground import open_ground
from bench.messaging.arrivals import build_arrivals_table, judge_arrivals, measure_arrivals
from bench.messaging.history import HistoryRounds, build_history_table, judge_history, measure_history
from bench.messaging.live_sends import build_sends_table, judge_live_sends, measure_live_sends
from bench.messaging.sandbox_sends import SendCost, build_costs_table, judge_sandbox_sends, measure_sandbox_sends
from bench.messaging.statuses import StatusRounds, build_statuses_table, judge_statuses, measure_statuses
from bench.webhooks.stored import make_partitions


class Size(Struct, frozen=True):
    rounds: int
    seconds: int
    callbacks: int
    """Of a round."""
    arrivals: int
    many: int
    few: int


FULL = Size(rounds=6, seconds=5, callbacks=500, arrivals=100, many=5_000_000, few=10_000)
QUICK = Size(rounds=2, seconds=2, callbacks=100, arrivals=10, many=100_000, few=10_000)


class Outcome(Struct, frozen=True):
    """Every measurement, round by round."""

    sends: dict[str, list[Measurement]]
    costs: dict[str, list[SendCost]]
    statuses: list[StatusRounds]
    arrivals: list[float]
    history: HistoryRounds


async def measure_messaging(folder: Path, is_quick: bool) -> Findings:
    size = QUICK if is_quick else FULL
    async with open_ground(folder) as ground:
        await make_partitions(ground)
        outcome = Outcome(
            sends=await measure_live_sends(ground, size.rounds, size.seconds),
            costs=await measure_sandbox_sends(ground, size.rounds, size.seconds),
            statuses=await measure_statuses(ground, size.rounds, size.callbacks),
            arrivals=await measure_arrivals(ground, size.arrivals),
            history=await measure_history(ground, size.rounds, size.few, size.many),
        )
    verdicts = [
        judge_live_sends(outcome.sends),
        *judge_sandbox_sends(outcome.costs),
        *judge_statuses(outcome.statuses),
        judge_arrivals(outcome.arrivals),
        judge_history(outcome.history),
    ]
    tables = [
        build_sends_table(outcome.sends),
        build_costs_table(outcome.costs),
        build_statuses_table(outcome.statuses),
        build_arrivals_table(outcome.arrivals),
        build_history_table(outcome.history),
    ]
    return Findings(verdicts, tables, outcome)
