"""The words of the tracking page in its two languages."""

from collections.abc import Mapping

from sapa.shipping.tracking_page.types import PageLanguage

STAGES = ("ordered", "picked_up", "in_transit", "out_for_delivery", "delivered")
"""The stages that the page shows, in order."""

STAGE_OF: Mapping[str, str] = {
    **dict.fromkeys(("draft", "awaiting", "booking", "booking_unknown", "booking_failed"), "ordered"),
    **dict.fromkeys(("confirmed", "scheduled", "awaiting_dropoff", "finding_driver"), "ordered"),
    **dict.fromkeys(("driver_assigned", "picking_up", "no_driver", "rejected", "cancelling"), "ordered"),
    "picked_up": "picked_up",
    **dict.fromkeys(("in_transit", "on_hold", "returning", "returned", "lost"), "in_transit"),
    **dict.fromkeys(("out_for_delivery", "delivery_failed"), "out_for_delivery"),
    "delivered": "delivered",
}
"""How far a parcel is, by its status. Cancelled parcels have no stage."""

PROBLEMS = frozenset({"on_hold", "delivery_failed", "returning", "returned", "lost"})

_HEADLINES: Mapping[PageLanguage, Mapping[str, str]] = {
    "id": {
        "preparing": "Paket sedang disiapkan",
        "confirmed": "Kurir sudah dipesan",
        "picking_up": "Kurir menuju penjual",
        "picked_up": "Paket sudah dijemput kurir",
        "in_transit": "Paket dalam perjalanan",
        "out_for_delivery": "Paket sedang diantar",
        "delivered": "Paket sudah diterima",
        "on_hold": "Paket tertahan",
        "delivery_failed": "Paket belum berhasil diantar",
        "returning": "Paket dikembalikan ke penjual",
        "returned": "Paket sudah kembali ke penjual",
        "lost": "Paket bermasalah",
        "cancelled": "Pengiriman dibatalkan",
    },
    "en": {
        "preparing": "The parcel is being prepared",
        "confirmed": "The courier is booked",
        "picking_up": "The courier is on the way to the shop",
        "picked_up": "The courier has the parcel",
        "in_transit": "The parcel is on its way",
        "out_for_delivery": "The parcel is out for delivery",
        "delivered": "The parcel was delivered",
        "on_hold": "The parcel is on hold",
        "delivery_failed": "The parcel could not be delivered yet",
        "returning": "The parcel is going back to the shop",
        "returned": "The parcel is back at the shop",
        "lost": "There is a problem with the parcel",
        "cancelled": "The shipment was cancelled",
    },
}
_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("draft", "awaiting", "booking", "booking_unknown", "booking_failed"), "preparing"),
    **dict.fromkeys(("no_driver", "rejected", "cancelling"), "preparing"),
    **dict.fromkeys(("confirmed", "scheduled", "awaiting_dropoff", "finding_driver"), "confirmed"),
    **dict.fromkeys(("driver_assigned", "picking_up"), "picking_up"),
    **dict.fromkeys(("cancelled", "cancelled_by_business"), "cancelled"),
}
_DETAILS: Mapping[PageLanguage, Mapping[str, str]] = {
    "id": {
        "on_hold": "Kurir akan melanjutkan pengiriman. Hubungi penjual jika perlu.",
        "delivery_failed": "Kurir akan mencoba lagi. Pastikan ada yang bisa menerima paket.",
        "returning": "Hubungi penjual untuk pengiriman ulang atau pengembalian dana.",
        "returned": "Hubungi penjual untuk pengiriman ulang atau pengembalian dana.",
        "lost": "Hubungi penjual untuk bantuan.",
    },
    "en": {
        "on_hold": "The courier will continue. Contact the shop if you need help.",
        "delivery_failed": "The courier will try again. Make sure that somebody can receive the parcel.",
        "returning": "Contact the shop for a new shipment or a refund.",
        "returned": "Contact the shop for a new shipment or a refund.",
        "lost": "Contact the shop for help.",
    },
}
_STAGE_WORDS: Mapping[PageLanguage, Mapping[str, str]] = {
    "id": dict(zip(STAGES, ("Disiapkan", "Dijemput", "Perjalanan", "Diantar", "Diterima"), strict=True)),
    "en": dict(zip(STAGES, ("Prepared", "Picked up", "On the way", "Out for delivery", "Delivered"), strict=True)),
}
TEXTS: Mapping[PageLanguage, Mapping[str, str]] = {
    "id": {
        "title": "Lacak paket",
        "steps": "Tahap pengiriman",
        "done": "selesai",
        "present": "saat ini",
        "open": "belum",
        "history": "Riwayat",
        "empty": "Belum ada kabar dari kurir.",
        "courier": "Kurir",
        "awb": "Nomor resi",
        "cash": "Bayar ke kurir",
        "expected": "Perkiraan tiba",
        "destination": "Kota tujuan",
        "map": "Lihat kota di peta",
        "live": "Ikuti kurir di peta",
        "times": "Waktu setempat: {zone}",
        "test": "Ini paket uji coba. Tidak ada yang dikirim.",
        "language": "Bahasa",
        "missing": "Halaman ini tidak ditemukan",
        "missing_detail": "Periksa kembali tautannya, atau minta tautan baru kepada penjual.",
    },
    "en": {
        "title": "Track parcel",
        "steps": "Steps of the delivery",
        "done": "done",
        "present": "now",
        "open": "to come",
        "history": "History",
        "empty": "No updates from the courier yet.",
        "courier": "Courier",
        "awb": "Tracking number",
        "cash": "To pay to the courier",
        "expected": "Expected by",
        "destination": "Destination",
        "map": "Show the city on a map",
        "live": "Follow the courier on a map",
        "times": "Local time: {zone}",
        "test": "This is a test parcel. Nothing is shipped.",
        "language": "Language",
        "missing": "We could not find this page",
        "missing_detail": "Check the link, or ask the shop for a new one.",
    },
}
LANGUAGE_NAMES: Mapping[PageLanguage, str] = {"id": "Bahasa Indonesia", "en": "English"}


def get_headline(language: PageLanguage, status: str) -> str:
    return _HEADLINES[language][_KEYS.get(status, status)]


def find_detail(language: PageLanguage, status: str) -> str | None:
    return _DETAILS[language].get(status)


def get_stage_word(language: PageLanguage, stage: str) -> str:
    return _STAGE_WORDS[language][stage]
