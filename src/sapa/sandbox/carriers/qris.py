"""QRIS codes as banking apps read them: fields of a number, a length and a value, then a checksum (EMVCo)."""

from binascii import crc_hqx

_CHECKSUM = "6304"
_RUPIAH = "360"


def build_qris(number: str, amount: int) -> str:
    """The content of a code that pays an amount to the sandbox's carrier. No bank knows the merchant."""
    merchant = _field(0, "ID.CO.SANDBOX") + _field(1, number)
    fields = {0: "01", 1: "12", 26: merchant, 52: "4215", 53: _RUPIAH, 54: str(amount), 58: "ID", 59: "SAPA SANDBOX"}
    text = "".join(_field(tag, value) for tag, value in fields.items()) + _field(60, "JAKARTA") + _CHECKSUM
    return f"{text}{crc_hqx(text.encode(), 0xFFFF):04X}"


def _field(tag: int, value: str) -> str:
    return f"{tag:02d}{len(value):02d}{value}"
