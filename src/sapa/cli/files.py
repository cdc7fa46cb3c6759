"""Files that commands read and write, checked before any work begins."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sapa.http.errors import Invalid


@contextmanager
def explain_os_errors(message: str) -> Iterator[None]:
    """Turns an OSError of the block into an error about the file."""
    try:
        yield
    except OSError as error:
        raise Invalid(f"{message}: {error.strerror or error}.") from None


def open_input(path: Path) -> BinaryIO:
    """A seekable file, because an interrupted import resumes in the middle."""
    with explain_os_errors(f"The file {path} cannot be read"):
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return path.open("rb")
    raise Invalid(f"{path} is {'a folder' if stat.S_ISDIR(mode) else 'not a regular file'}; a file is needed.")


def find_kind(path: Path) -> int | None:
    """The kind of a path, links followed, as `stat` has it; None if it does not exist."""
    with explain_os_errors(f"{path} cannot be used"):
        try:
            return stat.S_IFMT(path.stat().st_mode)
        except FileNotFoundError:
            return None


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears when it is complete; devices and pipes are written directly."""
    if path is None:
        with _standard_output() as file:
            yield file
        return
    message = f"{path} cannot be written to"
    kind = find_kind(path)
    if kind == stat.S_IFDIR:
        raise Invalid(f"{message}: it is a folder.")
    if kind not in {None, stat.S_IFREG}:
        with explain_os_errors(message):
            file = path.open("wb", buffering=0)
        with file:
            yield file
        return
    target = path.resolve()
    beside = build_name_beside(target)
    try:
        with explain_os_errors(message):
            file = beside.open("wb")
        with file:
            yield file
            with explain_os_errors(message):
                file.flush()
        with explain_os_errors(message):
            beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    try:
        yield sys.stdout.buffer
        with explain_os_errors("Standard output cannot be written to"):
            sys.stdout.buffer.flush()
    except Invalid:
        # The buffer cannot be flushed, and Python would complain about it at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def write_all(file: BinaryIO, content: bytes) -> None:
    """A pipe may accept less than everything."""
    with explain_os_errors("The output cannot be written to"):
        while content:
            content = content[file.write(content) :]


def build_name_beside(path: Path) -> Path:
    """In the same folder, so that it can replace the other atomically."""
    return path.with_name(f".{path.name}.{os.getpid()}")
