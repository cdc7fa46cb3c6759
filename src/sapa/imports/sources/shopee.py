"""Orders of Shopee: a workbook of text cells, one row per variation; vouchers, shipping and totals repeat per row."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import partial

from sapa.imports.cells import BadCell
from sapa.imports.sources.interface import (
    ConversionContext,
    Converted,
    Fields,
    FileProfile,
    Records,
    has_columns,
    list_columns,
)
from sapa.imports.sources.order_fields import ForeignState, build_address, build_order, join_notes
from sapa.imports.sources.order_money import ZERO, ForeignLine, OrderMoney
from sapa.imports.sources.records import (
    Group,
    convert_groups,
    read_amount,
    read_instant,
    read_quantity,
    read_text,
)
from sapa.imports.tables.files import HeaderRow, TableRecord

NAME = "shopee"

_STATES = {
    "belum bayar": "unpaid",
    "perlu dikirim": "paid", "pembatalan diajukan": "paid",
    "sedang dikirim": "shipped", "telah dikirim": "shipped",
    "pesanan diterima": "received", "selesai": "received",
    "batal": "cancelled", "dibatalkan": "cancelled",
}  # fmt: skip
_DISCOUNTS = {
    "voucher ditanggung penjual": "Voucher Ditanggung Penjual",
    "voucher ditanggung shopee": "Voucher Ditanggung Shopee",
    "paket diskon (diskon dari shopee)": "Paket Diskon Shopee",
    "paket diskon (diskon dari penjual)": "Paket Diskon Penjual",
    "potongan koin shopee": "Koin Shopee",
    "diskon kartu kredit": "Diskon Kartu Kredit",
}
_RETURNED = "permintaan disetujui"


def convert_orders(records: Records, header: HeaderRow, context: ConversionContext) -> Iterator[Converted]:
    return convert_groups(records, lambda row: row.get("no. pesanan"), partial(_build_order, context))


def _build_order(context: ConversionContext, rows: Group) -> Fields:
    order = rows[0]
    return build_order(
        order.get("no. pesanan"),
        read_instant(order, "waktu pesanan dibuat", context),
        _build_money(rows),
        _build_state(rows, context),
        shippingAddress=build_address(
            order.get("nama penerima"),
            context.region,
            order.get("no. telepon"),
            address1=order.get("alamat pengiriman"),
            city=order.get("kota/kabupaten"),
            province=order.get("provinsi"),
            zip=_read_zip(order.get("alamat pengiriman")),
        ),
        notes=join_notes(order.get("catatan dari pembeli"), order.get("catatan")),
        tags=["shopee"],
    )


def _read_zip(address: str) -> str:
    """The last five digits in a row: the file has no column for the postal code."""
    found = re.findall(r"(?<!\d)\d{5}(?!\d)", address)
    return found[-1] if found else ""


def _read_money(row: TableRecord, name: str) -> Decimal:
    """A dot separates thousands here."""
    return read_amount(row, name, ",")


def _build_money(rows: Group) -> OrderMoney:
    order = rows[0]
    lines = [
        ForeignLine(
            " - ".join(part for part in (row.get("nama produk"), row.get("nama variasi")) if part),
            read_quantity(row, "jumlah"),
            _read_money(row, "harga setelah diskon" if row.get("harga setelah diskon") else "harga awal"),
            sku=read_text(row, "nomor referensi sku", "sku induk"),
        )
        for row in rows
        if read_quantity(row, "jumlah") > 0
    ]
    discounts = [
        {"title": title, "amount": amount}
        for column, title in _DISCOUNTS.items()
        if (amount := abs(_read_money(order, column)))
    ]
    return OrderMoney(
        lines=lines,
        discounts=discounts,
        shipping=_read_money(order, "ongkos kirim dibayar oleh pembeli"),
        shipping_title=read_text(order, "opsi pengiriman"),
        total=_read_money(order, "total pembayaran") if order.get("total pembayaran") else None,
    )


def _build_state(rows: Group, context: ConversionContext) -> ForeignState:
    """Cash on delivery is paid when the parcel is received."""
    order = rows[0]
    state = _get_state(order.get("status pesanan"))
    is_cod = "cod" in order.get("metode pembayaran").casefold()
    is_paid = state == "received" or (not is_cod and state in {"paid", "shipped"})
    returned = sum(
        (_read_money(row, "harga setelah diskon") * read_quantity(row, "returned quantity") for row in rows), ZERO
    )
    is_returned = any(row.get("status pembatalan/ pengembalian").casefold() == _RETURNED for row in rows)
    return ForeignState(
        is_fulfilled=state in {"shipped", "received"},
        is_cancelled=state == "cancelled",
        paid="all" if is_paid else ZERO,
        refunded=(returned or "all") if is_returned and is_paid else ZERO,
        paid_at=read_instant(order, "waktu pesanan selesai" if is_cod else "waktu pembayaran dilakukan", context),
        method=read_text(order, "metode pembayaran"),
    )


def _get_state(status: str) -> str:
    """Statuses may go on with a date: `Selesai`, `Sedang Dikirim - …`."""
    text = status.casefold()
    for words, state in _STATES.items():
        if text.startswith(words):
            return state
    error = BadCell(f"{status[:40]!r} is not a known status of Shopee")
    error.field = "status pesanan"
    raise error


ORDERS = FileProfile(
    NAME,
    "orders",
    has_columns(["No. Pesanan", "Status Pesanan", "Nama Produk"]),
    convert_orders,
    list_columns(
        "No. Pesanan|Status Pesanan|Status Pembatalan/ Pengembalian|Opsi Pengiriman|Waktu Pesanan Dibuat",
        "Waktu Pembayaran Dilakukan|Metode Pembayaran|SKU Induk|Nama Produk|Nomor Referensi SKU|Nama Variasi",
        "Harga Awal|Harga Setelah Diskon|Jumlah|Returned quantity|Voucher Ditanggung Penjual|Voucher Ditanggung Shopee",
        "Paket Diskon (Diskon dari Shopee)|Paket Diskon (Diskon dari Penjual)|Potongan Koin Shopee|Diskon Kartu Kredit",
        "Ongkos Kirim Dibayar oleh Pembeli|Total Pembayaran|Catatan dari Pembeli|Catatan|Nama Penerima|No. Telepon",
        "Alamat Pengiriman|Kota/Kabupaten|Provinsi|Waktu Pesanan Selesai",
    ),
)
PROFILES = (ORDERS,)
