"""A process that reads a file somebody brought along: it has limits on time and memory, and no secrets.

It gets a request on standard input and writes lines to standard output: those of the converted file, or a preview. It
ends with code 0 and a last line that says so, or with a line that says why the file cannot be used.
"""

import resource
import signal
import sys
import traceback
from pathlib import Path

import msgspec
from msgspec import Struct

from sapa.imports.conversion import FileReading, ImportPreview, convert, preview, recognise_file, recognise_source
from sapa.imports.sources import spreadsheet
from sapa.imports.types import UnusableFile

MAX_MEMORY_BYTES = 2 * 1_073_741_824
END = b'{"end":true}\n'
LONGEST_FAILURE = 4_000
AUTO = "auto"
"""The source of a file that is to be recognised."""


class ConversionRequest(Struct, frozen=True):
    path: str
    reading: FileReading
    is_preview: bool
    cpu_seconds: int | None


class ConversionRefusal(Struct, frozen=True):
    """The last line instead of the end."""

    refusal: str


class ConversionFailure(Struct, frozen=True):
    """The same for a fault that is ours."""

    failure: str


def run() -> None:
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=ConversionRequest)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # elsewhere the limit is refused or ignored
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    if request.cpu_seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (request.cpu_seconds, request.cpu_seconds + 1))
    output = sys.stdout.buffer
    try:
        if request.is_preview:
            output.write(msgspec.json.encode(_preview(request)) + b"\n")
        else:
            for line in convert(Path(request.path), request.reading):
                output.write(line)
        output.write(END)
    except UnusableFile as error:
        output.write(msgspec.json.encode(ConversionRefusal(error.message)) + b"\n")
    except MemoryError:
        output.write(msgspec.json.encode(ConversionRefusal("The file needs too much memory. Split it.")) + b"\n")
    except Exception:
        output.write(msgspec.json.encode(ConversionFailure(traceback.format_exc()[-LONGEST_FAILURE:])) + b"\n")
    output.flush()


def _preview(request: ConversionRequest) -> ImportPreview:
    """A file that its caller does not know is recognised first."""
    path, reading = Path(request.path), request.reading
    if reading.source == AUTO:
        source = recognise_source(path, reading.format, reading.resource)
        reading = msgspec.structs.replace(reading, source=source or _find_fallback(path, reading))
    return preview(path, reading)


def _find_fallback(path: Path, reading: FileReading) -> str | None:
    """Our own format if the header has our fields, else a spreadsheet."""
    try:
        recognise_file(path, msgspec.structs.replace(reading, source=None))
    except UnusableFile:
        return spreadsheet.NAME
    return None


if __name__ == "__main__":
    run()
