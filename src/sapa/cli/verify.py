"""`sapa webhook verify`: checks the signature of a request."""

import sys
import time
from math import isfinite
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from sapa.cli.connect import AsJson, harmless
from sapa.webhooks.receiver import explain


def verify(
    secret: Annotated[list[str], typer.Option(help="The endpoint's signing secret; repeatable during a rotation.")],
    body: Annotated[str, typer.Option(help="A file with the request's raw body, or - for standard input.")],
    header: Annotated[list[str] | None, typer.Option(help="A header of the request, as 'Name: value'.")] = None,
    headers: Annotated[Path | None, typer.Option(help="A file with its headers, one 'Name: value' per line.")] = None,
    at: Annotated[float | None, typer.Option(help="When it was received, in Unix seconds. Defaults to now.")] = None,
    json: AsJson = False,
) -> None:
    """Check a request's signature, and explain what is wrong with it. The exit code is 1 if it is invalid."""
    lines = [*(header or []), *(_read(headers).decode(errors="replace").splitlines() if headers else [])]
    if at is not None and not isfinite(at):
        raise typer.BadParameter("--at must be a number of seconds since 1970")
    content = _read(None if body == "-" else Path(body))
    problems = explain(_parse_lines(lines), content, secret, time.time() if at is None else at)
    if json:
        typer.echo(msgspec.json.encode({"valid": not problems, "problems": problems}).decode())
    else:
        text = "\n".join(f"✗ {problem}" for problem in problems) or "✓ The signature is valid."
        Console(soft_wrap=True).print(harmless(text), highlight=False, markup=False)
    sys.exit(1 if problems else 0)


def _read(path: Path | None) -> bytes:
    if path is None:
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror}") from None


def _parse_lines(lines: list[str]) -> list[tuple[str, str]]:
    """Skips lines that are not headers, such as the request line."""
    pairs = (line.partition(":") for line in lines)
    return [(name.strip(), value.strip()) for name, colon, value in pairs if colon and " " not in name.strip()]
