"""KiriminAja's codes and callback methods in our statuses. An unknown one is recorded without effect."""

_MEANINGS: dict[str, tuple[int, ...]] = {
    "confirmed": (100, 101, 102, 105, 110),
    "picked_up": (103, 104),
    "in_transit": (106, 107, 211),
    "on_hold": (210, 500, 555, 901, 902, 903, 904, 905),
    "delivery_failed": (152, 301, 310, 311),
    "delivered": (200,),
    "cancelled": (300, 302),
    "cancelling": (350,),
    "returning": (401, 402, 403, 404, 405, 406),
    "returned": (400,),
    "lost": (303, 333, 701, 702, 703, 704),
}

BY_CODE: dict[int, str] = {code: ours for ours, codes in _MEANINGS.items() for code in codes}

NEW = 100
TRANSIT_WORDS = (
    "transit", "forwarded", "departed", "arrived at", "received at", "received by", "sorting", "with delivery courier",
    "dalam perjalanan", "diteruskan", "dikirim ke", "berangkat", "tiba di", "diterima di", "sortir", "dibawa kurir",
)  # fmt: skip
"""How couriers say that a parcel is on its way. Their reports come with the code of a new parcel."""

PAYMENT_BY_WORD = {"paid": "paid", "pending": "pending", "unpaid": "pending"}
PAYMENT_BY_CODE = {0: "paid", 9: "pending"}

BY_METHOD: dict[str, str] = {
    "processed_packages": "confirmed",
    "validated_packages": "confirmed",
    "shipped_packages": "picked_up",
    "finished_packages": "delivered",
    "canceled_packages": "cancelled",
    "rejected_packages": "rejected",
    "returned_packages": "returning",
    "return_finished_packages": "returned",
}


def find_status(code: int | None, text: str | None) -> str | None:
    """A new parcel whose text says that it is on its way is in transit."""
    if code == NEW and any(word in (text or "").lower() for word in TRANSIT_WORDS):
        return "in_transit"
    return BY_CODE.get(code or 0)
