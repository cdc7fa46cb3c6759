"""Draws documents as PDF files. Run as a module it reads a request from standard input and writes the file to standard
output.

Only `printer` loads it, because the libraries need 27 MB: most processes never print.
"""

import sys
from collections.abc import Sequence
from io import BytesIO

import msgspec
from pypdf import PdfReader, PdfWriter

from sapa.shipping.labels.content import PrintRequest
from sapa.shipping.labels.label_pages import draw_labels
from sapa.shipping.labels.manifest_pages import draw_manifests
from sapa.shipping.labels.slip_pages import draw_slips

DOCUMENTS = {"label": draw_labels, "packing_slip": draw_slips, "manifest": draw_manifests}

_read = msgspec.msgpack.Decoder(PrintRequest | list[bytes]).decode


def draw(request: PrintRequest) -> bytes:
    return DOCUMENTS[request.document](request)


def join(files: Sequence[bytes]) -> bytes:
    """One file with the pages of all."""
    writer = PdfWriter()
    for content in files:
        writer.append(PdfReader(BytesIO(content)))
    joined = BytesIO()
    writer.write(joined)
    return joined.getvalue()


def run() -> None:
    work = _read(sys.stdin.buffer.read())
    sys.stdout.buffer.write(draw(work) if isinstance(work, PrintRequest) else join(work))


if __name__ == "__main__":
    run()
