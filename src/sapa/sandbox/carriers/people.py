"""The simulators' drivers: fictional, and always the same for a booking."""

from hashlib import sha256

from msgspec import Struct

_NAMES = ("Agus", "Budi", "Citra", "Dewi", "Eko", "Fitri", "Gilang", "Hana")


class Person(Struct, frozen=True):
    name: str
    phone: str
    plate: str
    photo: str


def choose(reference: str, number: int) -> Person:
    """The first driver of a booking, or a replacement."""
    place = (sha256(reference.encode()).digest()[0] + number) % len(_NAMES)
    return Person(
        name=f"{_NAMES[place]} (sandbox)",
        phone=f"+6289900000{place:03d}",
        plate=f"B {1230 + place} SBX",
        photo=f"https://sandbox.example/drivers/{place}.svg",
    )
