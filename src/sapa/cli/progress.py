"""A progress bar on standard error, with rate and remaining time; hidden without a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

Show = Callable[[int, int], None]
"""How much is done, and how many rows that was."""


class RateColumn(ProgressColumn):
    """Rows per second since the start."""

    def render(self, task: Task) -> Text:
        rows, elapsed = task.fields["rows"], task.finished_time or task.elapsed or 0
        return Text(f"{rows:,} rows, {rows / elapsed:,.0f}/s" if elapsed else f"{rows:,} rows")


@contextmanager
def open_progress(description: str, total: int, *, is_quiet: bool) -> Iterator[Show]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), RateColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=is_quiet or not console.is_terminal) as progress:
        bar = progress.add_task(description, total=total or 1, rows=0)
        yield lambda done, rows: progress.update(bar, completed=done, rows=rows)
