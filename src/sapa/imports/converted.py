"""The lines of a converted file: records as the API accepts them, each with its line in the original."""

import msgspec
from msgspec import Raw, Struct


class ConvertedRecord(Struct, frozen=True, omit_defaults=True):
    """One line of a converted file: a record, or why there is none."""

    line: int
    row: Raw | None = None
    field: str = ""
    message: str = ""


decode_record = msgspec.json.Decoder(ConvertedRecord).decode
