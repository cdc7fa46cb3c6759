"""KiriminAja's codes and callback methods in our statuses. An unknown one is recorded without effect."""

_MEANINGS: dict[str, tuple[int, ...]] = {
    "confirmed": (100, 101, 102, 105, 110),
    "picked_up": (103, 104),
    "in_transit": (106, 107, 211),
    "on_hold": (210, 500, 555, 901, 902, 903, 905),
    "delivery_failed": (152, 301, 310, 311),
    "delivered": (200,),
    "cancelled": (300, 302),
    "cancelling": (350,),
    "returning": (401, 402, 403, 404),
    "returned": (400,),
    "lost": (333, 701, 702, 703, 704),
}

BY_CODE: dict[int, str] = {code: ours for ours, codes in _MEANINGS.items() for code in codes}

BY_METHOD: dict[str, str] = {
    "processed_packages": "confirmed",
    "validated_packages": "confirmed",
    "shipped_packages": "picked_up",
    "finished_packages": "delivered",
    "canceled_packages": "cancelled",
    "rejected_packages": "rejected",
    "returned_packages": "returned",
    "return_finished_packages": "returned",
}
