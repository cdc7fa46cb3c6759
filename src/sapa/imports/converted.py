"""The lines of a converted file: records as the API accepts them, each with its line in the original."""

import msgspec
from msgspec import Raw, Struct

from sapa.imports.types import Problem
from sapa.values.json import encode

NO_ROW = Raw()


class ConvertedRecord(Struct, frozen=True):
    """One line of a converted file: a record, or why there is none."""

    line: int
    row: Raw = NO_ROW
    field: str = ""
    message: str = ""

    @property
    def problem(self) -> Problem | None:
        return Problem(self.line, self.field, self.message) if self.message else None


class _RecordLine(Struct, frozen=True):
    line: int
    row: Raw


decode_record = msgspec.json.Decoder(ConvertedRecord).decode


def encode_record(record: ConvertedRecord) -> bytes:
    return encode(record.problem or _RecordLine(record.line, record.row)) + b"\n"
