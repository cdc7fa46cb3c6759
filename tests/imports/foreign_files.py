"""Files as other systems export them, with their columns and quirks, and what an import should make of each."""

import csv
import io
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import xlsxwriter  # type: ignore[import-untyped]
from msgspec import Struct

from sapa.imports.types import Resource
from tests.imports.shops import Article, Person, Sale, Shop

WIB = timezone(timedelta(hours=7))
WITA = timezone(timedelta(hours=8))
Rows = list[list[str]]


class ForeignFile(Struct, frozen=True):
    """A file, how it is imported, and what should come of it."""

    name: str
    source: str
    resource: Resource
    content: bytes
    expected: list[dict[str, Any]]
    """For each record the fields that are compared, by their path."""
    options: Sequence[str] = ()


def write_csv(rows: Rows, separator: str = ",", encoding: str = "utf-8", ending: str = "\r\n") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=ending).writerows(rows)
    return text.getvalue().encode(encoding)


def write_xlsx(rows: Sequence[Sequence[Any]], titles: Sequence[str] = ()) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True, "strings_to_numbers": False}) as workbook:
        worksheet = workbook.add_worksheet("Data")
        for number, title in enumerate(titles):
            worksheet.write_string(number, 0, title)
        for number, row in enumerate(rows, len(titles)):
            for column, cell in enumerate(row):
                worksheet.write(number, column, cell)
    return file.getvalue()


def pick(row: dict[str, str], columns: Sequence[str]) -> list[str]:
    assert set(row) <= set(columns), set(row) - set(columns)
    return [row.get(column, "") for column in columns]


def build_all(shop: Shop) -> list[ForeignFile]:
    return [build(shop) for build in BUILDERS]


# Customers

SHOPIFY_CUSTOMERS_NEW = (
    "Customer ID|First Name|Last Name|Email|Accepts Email Marketing|Default Address Company|Default Address Address1"
    "|Default Address Address2|Default Address City|Default Address Province Code|Default Address Country Code"
    "|Default Address Zip|Default Address Phone|Phone|Accepts SMS Marketing|Total Spent|Total Orders|Note|Tax Exempt"
    "|Tags|Birthday (customer.metafields.custom.birthday)"
).split("|")
SHOPIFY_CUSTOMERS_OLD = (
    "First Name|Last Name|Email|Accepts Email Marketing|Company|Address1|Address2|City|Province|Province Code|Country"
    "|Country Code|Zip|Phone|Accepts SMS Marketing|Total Spent|Total Orders|Tags|Note|Tax Exempt"
).split("|")
FLAGS = {True: "yes", False: "no", None: ""}


def shopify_customers_new(shop: Shop) -> ForeignFile:
    rows = [
        pick(
            {
                "Customer ID": f"'72104483{person.number:05d}",
                "First Name": person.first,
                "Last Name": person.last,
                "Email": person.email,
                "Accepts Email Marketing": FLAGS[person.subscribes],
                "Default Address Address1": person.street,
                "Default Address City": person.city,
                "Default Address Province Code": "JB",
                "Default Address Country Code": "ID",
                "Default Address Zip": f"'{person.zip}",
                "Default Address Phone": f"'{person.e164}",
                "Phone": f"'{person.e164}" if person.number % 2 else "",
                "Total Spent": "150000.00",
                "Total Orders": "3",
                "Note": person.note,
                "Tax Exempt": "no",
                "Tags": ", ".join(person.tags),
                "Birthday (customer.metafields.custom.birthday)": "1990-02-01",
            },
            SHOPIFY_CUSTOMERS_NEW,
        )
        for person in shop.people
    ]
    expected = [
        _expect_person(person)
        | {"externalId": f"72104483{person.number:05d}", "addresses.0.zip": person.zip, "addresses.0.country": "ID"}
        | {"additionalData.totalOrders": 3}
        | {"additionalData.Birthday (customer.metafields.custom.birthday)": "1990-02-01"}
        | _expect_consent(person, "MAIL")
        for person in shop.people
    ]
    content = write_csv([SHOPIFY_CUSTOMERS_NEW, *rows])
    return ForeignFile("shopify-customers-new.csv", "shopify", "customers", content, expected, ["--keep-columns"])


def shopify_customers_old(shop: Shop) -> ForeignFile:
    header = [name.upper() for name in SHOPIFY_CUSTOMERS_OLD]
    rows = [
        pick(
            {
                "First Name": person.first,
                "Last Name": person.last,
                "Email": person.email,
                "Accepts Email Marketing": FLAGS[person.subscribes],
                "Address1": person.street,
                "City": person.city,
                "Province": person.province,
                "Country": "Indonesia",
                "Zip": f"'{person.zip}",
                "Phone": person.e164,
                "Total Spent": "0.00",
                "Total Orders": "0",
                "Tags": ", ".join(person.tags),
                "Tax Exempt": "no",
            },
            SHOPIFY_CUSTOMERS_OLD,
        )
        for person in shop.people
    ]
    expected = [_expect_person(person) | {"addresses.0.province": person.province} for person in shop.people]
    content = write_csv([header, *rows], encoding="utf-8-sig")
    return ForeignFile("shopify-customers-old.csv", "shopify", "customers", content, expected)


def woocommerce_customers(shop: Shop) -> ForeignFile:
    header = (
        "Name|Username|Last active|Date registered|Email|Orders|Total spend|AOV|Country / Region|City|Region"
        "|Postal code"
    ).split("|")
    rows = [
        [p.name, f"user{p.number}", "2026-01-05", "2025-01-05", p.email, "3", "150000.00", "50000.00", "ID", p.city,
         p.province, p.zip]
        for p in shop.people
    ]  # fmt: skip
    expected = [
        {"email": p.email, "firstName": p.first, "lastName": p.last, "additionalData.username": f"user{p.number}"}
        for p in shop.people
    ]
    return ForeignFile("woo-customers.csv", "woocommerce", "customers", write_csv([header, *rows]), expected)


def indonesian_customers(shop: Shop) -> ForeignFile:
    """UTF-16 with tabs, as Excel saves "Unicode text": leading zeros are lost, and a line of totals stands below."""
    header = ["Nama Lengkap", "No. HP", "Surel", "Alamat", "Kota/Kabupaten", "Provinsi", "Kode Pos", "Grup",
              "Tgl Lahir", "Langganan", "", ""]  # fmt: skip
    rows = [
        [p.name, p.phone[1:] if p.number % 2 else f"{p.phone} / 0811", p.email, p.street, p.city, p.province, p.zip,
         ";".join(p.tags), "17 Agustus 1990", {True: "Ya", False: "Tidak", None: ""}[p.subscribes], "", ""]
        for p in shop.people
    ]  # fmt: skip
    total = ["Total", str(len(rows)), *[""] * 10]
    content = write_csv([["sep=\t"], header, *rows, [""] * 12, total], "\t", "utf-16")
    expected = [
        _expect_person(p) | {"additionalData.Tgl Lahir": "17 Agustus 1990", "tags": p.tags} | _expect_consent(p, "CRM")
        for p in shop.people
    ]
    return ForeignFile("pelanggan.csv", "spreadsheet", "customers", content, expected, ["--keep-columns"])


def _expect_person(person: Person) -> dict[str, Any]:
    return {
        "email": person.email,
        "phoneNumber": person.e164,
        "firstName": person.first,
        "lastName": person.last,
        "tags": person.tags,
        "addresses.0.address1": person.street,
        "addresses.0.city": person.city,
    }


def _expect_consent(person: Person, app: str) -> dict[str, Any]:
    if person.subscribes is None:
        return {"subscriptionStatus": []}
    status = "subscribe" if person.subscribes else "unsubscribe"
    return {"subscriptionStatus": [{"app": app, "status": status}]}


# Orders

SHOPIFY_ORDERS = (
    "Name|Email|Financial Status|Paid at|Fulfillment Status|Fulfilled at|Accepts Marketing|Currency|Subtotal|Shipping"
    "|Taxes|Total|Discount Code|Discount Amount|Shipping Method|Created at|Lineitem quantity|Lineitem name"
    "|Lineitem price|Lineitem compare at price|Lineitem sku|Lineitem requires shipping|Lineitem taxable"
    "|Lineitem fulfillment status|Billing Name|Billing Street|Billing Phone|Shipping Name|Shipping Street"
    "|Shipping Address1|Shipping City|Shipping Zip|Shipping Province|Shipping Country|Shipping Phone|Notes"
    "|Note Attributes|Cancelled at|Payment Method|Payment Reference|Refunded Amount|Vendor|Outstanding Balance|Id|Tags"
    "|Risk Level|Source|Lineitem discount|Tax 1 Name|Tax 1 Value|Phone"
).split("|")


def shopify_orders(shop: Shop) -> ForeignFile:
    rows = [row for sale in shop.sales for row in _shopify_rows(sale)]
    expected = [_expect_sale(sale, f"55500{sale.number:05d}", sale.total) for sale in shop.sales]
    content = write_csv([SHOPIFY_ORDERS, *rows])
    return ForeignFile("shopify-orders.csv", "shopify", "orders", content, expected)


def shopify_orders_old(shop: Shop) -> ForeignFile:
    """Old files end earlier and have no Id: the order is known by its name."""
    width = SHOPIFY_ORDERS.index("Id")
    rows = [row[:width] for sale in shop.sales for row in _shopify_rows(sale)]
    expected = [
        _expect_sale(sale, f"#{1001 + sale.number}", sale.total) | {"lineItems.0.discount": None}
        if not any(line.discount for line in sale.lines)
        else _expect_sale(sale, f"#{1001 + sale.number}", sale.total, has_line_discounts=False)
        for sale in shop.sales
    ]
    content = write_csv([SHOPIFY_ORDERS[:width], *rows])
    return ForeignFile("shopify-orders-old.csv", "shopify", "orders", content, expected)


def _shopify_rows(sale: Sale) -> Rows:
    discounts = sale.discount + sum(line.discount for line in sale.lines)
    local = sale.at.astimezone(WIB)
    status = {"fulfilled": "paid", "cancelled": "voided"}.get(sale.state, sale.state)
    first = {
        "Financial Status": status,
        "Paid at": f"{local:%Y-%m-%d %H:%M:%S %z}" if sale.paid else "",
        "Fulfillment Status": "fulfilled" if sale.state == "fulfilled" else "unfulfilled",
        "Accepts Marketing": "no",
        "Currency": "IDR",
        "Subtotal": f"{sale.subtotal}.00",
        "Shipping": f"{sale.shipping}.00",
        "Taxes": f"{sale.tax}.00",
        "Total": f"{sale.total}.00",
        "Discount Code": "HEMAT" if discounts else "",
        "Discount Amount": f"{discounts}.00",
        "Shipping Method": "JNE" if sale.shipping else "",
        "Created at": f"{local:%Y-%m-%d %H:%M:%S %z}",
        "Billing Name": sale.buyer.name,
        "Shipping Name": sale.buyer.name,
        "Shipping Address1": sale.buyer.street,
        "Shipping City": sale.buyer.city,
        "Shipping Zip": f"'{sale.buyer.zip}",
        "Shipping Country": "ID",
        "Shipping Phone": f"'{sale.buyer.phone}",
        "Notes": "tolong\nbungkus rapi" if sale.number % 4 == 0 else "",
        "Cancelled at": f"{local:%Y-%m-%d %H:%M:%S %z}" if sale.state == "cancelled" else "",
        "Payment Method": "Bank Transfer" if sale.paid else "",
        "Refunded Amount": f"{sale.refunded}.00",
        "Outstanding Balance": f"{sale.total - sale.paid}.00",
        "Id": f"55500{sale.number:05d}",
        "Tags": "web, kado",
        "Risk Level": "Low",
        "Tax 1 Name": "PPN 11%" if sale.tax else "",
    }
    rows = []
    for number, line in enumerate(sale.lines):
        item = {
            "Name": f"#{1001 + sale.number}",
            "Email": sale.buyer.email,
            "Lineitem quantity": str(line.quantity),
            "Lineitem name": line.title,
            "Lineitem price": f"{line.price}.00",
            "Lineitem sku": line.sku,
            "Lineitem requires shipping": "true",
            "Lineitem discount": f"{line.discount}.00",
        }
        rows.append(pick(item | (first if number == 0 else {}), SHOPIFY_ORDERS))
    return rows


WOO_ORDERS = (
    "Order Number|Order Status|Order Date|Customer Note|First Name (Billing)|Last Name (Billing)|Company (Billing)"
    "|Address 1&2 (Billing)|City (Billing)|State Code (Billing)|Postcode (Billing)|Country Code (Billing)"
    "|Email (Billing)|Phone (Billing)|First Name (Shipping)|Last Name (Shipping)|Address 1&2 (Shipping)"
    "|City (Shipping)|State Code (Shipping)|Postcode (Shipping)|Country Code (Shipping)|Payment Method Title"
    "|Cart Discount Amount|Order Subtotal Amount|Shipping Method Title|Order Shipping Amount|Order Refund Amount"
    "|Order Total Amount|Order Total Tax Amount|SKU|Item #|Item Name|Quantity (- Refund)|Item Cost|Coupon Code"
    "|Discount Amount|Discount Amount Tax"
).split("|")
WOO_STATUSES = {
    "pending": "Menunggu pembayaran", "partially_paid": "On hold", "paid": "Sedang diproses", "fulfilled": "Selesai",
    "cancelled": "Dibatalkan", "refunded": "Refunded", "partially_refunded": "wc-completed",
}  # fmt: skip


def woocommerce_orders(shop: Shop) -> ForeignFile:
    """A decimal comma, a semicolon between cells, the order's cells in every row, two coupons that double the rows, and
    refunds in rows of their own."""
    rows, expected = [], []
    for sale in shop.sales:
        rows += _woo_rows(sale) + _woo_refund_rows(sale)
        expected.append(_expect_woo(sale))
    content = write_csv([WOO_ORDERS, *rows], ";")
    return ForeignFile("woo-orders.csv", "woocommerce", "orders", content, expected, ["--time-zone", "Asia/Makassar"])


def _comma(amount: int) -> str:
    return f"{amount},00"


def _woo_rows(sale: Sale) -> Rows:
    buyer = sale.buyer
    coupons = [("HEMAT", sale.discount - 100), ("EKSTRA", 100)] if sale.discount > 100 else [("", 0)]
    order = {
        "Order Number": str(9000 + sale.number),
        "Order Status": WOO_STATUSES[sale.state],
        "Order Date": f"{sale.at.astimezone(WITA):%Y-%m-%d %H:%M}",
        "First Name (Billing)": buyer.first,
        "Last Name (Billing)": buyer.last,
        "Address 1&2 (Billing)": buyer.street,
        "City (Billing)": buyer.city,
        "Email (Billing)": buyer.email,
        "Phone (Billing)": f"'{buyer.e164}",
        "Payment Method Title": "Transfer bank",
        "Cart Discount Amount": _comma(sale.discount if sale.discount > 100 else 0),
        "Order Shipping Amount": _comma(sale.shipping),
        "Shipping Method Title": "JNE",
        "Order Refund Amount": _comma(_woo_refunded(sale)),
        "Order Total Amount": _comma(_woo_total(sale)),
        "Order Total Tax Amount": _comma(sale.tax),
    }
    return [
        pick(
            order
            | {
                "SKU": line.sku,
                "Item #": str(number),
                "Item Name": line.title,
                "Quantity (- Refund)": str(line.quantity),
                "Item Cost": _comma(line.price),
                "Coupon Code": code,
                "Discount Amount": _comma(amount) if code else "",
            },
            WOO_ORDERS,
        )
        for number, line in enumerate(sale.lines, 1)
        for code, amount in coupons
    ]


def _woo_refund_rows(sale: Sale) -> Rows:
    """As an order of its own, and as a unit of the order."""
    if sale.state != "partially_refunded":
        return []
    title = sale.lines[0].title
    unit = {"Order Number": str(9000 + sale.number), "Order Status": WOO_STATUSES[sale.state], "Item #": "99",
            "Item Name": title, "Quantity (- Refund)": "-1", "Item Cost": _comma(-5_000)}  # fmt: skip
    refund = {"Order Number": str(70_000 + sale.number), "Order Status": "Refunded", "Item Name": title,
              "Order Total Amount": _comma(-_woo_refunded(sale)), "Quantity (- Refund)": "-1"}  # fmt: skip
    return [pick(unit, WOO_ORDERS), pick(refund, WOO_ORDERS)]


def _woo_total(sale: Sale) -> int:
    gross = sum(line.price * line.quantity for line in sale.lines)
    discount = sale.discount if sale.discount > 100 else 0
    return gross - discount + sale.shipping + (sale.tax if sale.is_tax_added else 0)


def _woo_refunded(sale: Sale) -> int:
    return {"refunded": _woo_total(sale), "partially_refunded": 5_000}.get(sale.state, 0)


def _expect_woo(sale: Sale) -> dict[str, Any]:
    total = _woo_total(sale)
    paid = total if sale.state in {"paid", "fulfilled", "refunded", "partially_refunded"} else 0
    return _expect_order(
        str(9000 + sale.number), sale.at.replace(second=0), sale, total, paid, _woo_refunded(sale),
        is_fulfilled=sale.state in {"fulfilled", "partially_refunded"},
    ) | {"customer.email": sale.buyer.email}  # fmt: skip


TIKTOK_ORDERS = (
    "Order ID|Order Status|Order Substatus|Cancelation/Return Type|Normal or Pre-order|SKU ID|Seller SKU|Product Name"
    "|Variation|Quantity|Sku Quantity of return|SKU Unit Original Price|SKU Subtotal Before Discount"
    "|SKU Platform Discount|SKU Seller Discount|SKU Subtotal After Discount|Shipping Fee After Discount"
    "|Original Shipping Fee|Shipping Fee Seller Discount|Shipping Fee Platform Discount|Distance Shipping Fee"
    "|Distance Fee|Order Refund Amount|Payment platform discount|Buyer Service Fee|Handling Fee|Shipping Insurance"
    "|Item Insurance|Order Amount|Created Time|Paid Time|RTS Time|Shipped Time|Delivered Time|Cancelled Time"
    "|Cancel By|Cancel Reason|Fulfillment Type|Warehouse Name|Tracking ID|Delivery Option|Shipping Provider Name"
    "|Buyer Message|Buyer Username|Recipient|Phone #|Zipcode|Country|Province|Regency and City|Districts|Villages"
    "|Detail Address|Additional address information|Payment Method|Weight(kg)|Product Category|Package ID"
    "|Purchase Channel|Seller Note|Checked Status|Checked Marked by|Tokopedia Invoice Number|Order Channel"
    "|Creator Handle"
).split("|")
TIKTOK_STATUSES = {
    "pending": "Belum dibayar", "partially_paid": "Belum dibayar", "paid": "Perlu dikirim", "fulfilled": "Dikirim",
    "cancelled": "Dibatalkan", "refunded": "Selesai", "partially_refunded": "Selesai",
}  # fmt: skip


def tokopedia_orders(shop: Shop) -> ForeignFile:
    """UTF-8 with BOM, a second line that describes the columns, a tab after ids and times."""
    describing = [f"Platform unique {name.lower()}." for name in TIKTOK_ORDERS]
    rows = [row for sale in shop.sales for row in _tiktok_rows(sale)]
    content = write_csv([TIKTOK_ORDERS, describing, *rows], encoding="utf-8-sig")
    return ForeignFile("tokopedia.csv", "tokopedia", "orders", content, [_expect_tiktok(sale) for sale in shop.sales])


def tiktok_orders(shop: Shop) -> ForeignFile:
    rows = [row for sale in shop.sales for row in _tiktok_rows(sale)]
    content = write_xlsx([TIKTOK_ORDERS, *rows])
    return ForeignFile("tiktok.xlsx", "tiktok", "orders", content, [_expect_tiktok(sale) for sale in shop.sales])


def _tiktok_rows(sale: Sale) -> Rows:
    local = f"{sale.at.astimezone(WIB):%d/%m/%Y %H:%M:%S}\t"
    is_cod = sale.number % 7 == 0
    return [
        pick(
            {
                "Order ID": f"5791{sale.number:014d}\t",
                "Order Status": TIKTOK_STATUSES[sale.state],
                "Cancelation/Return Type": "Return/Refund" if sale.refunded else "",
                "Seller SKU": line.sku,
                "Product Name": line.title,
                "Variation": "Default",
                "Quantity": str(line.quantity),
                "Sku Quantity of return": "0",
                "SKU Unit Original Price": str(line.price),
                "SKU Subtotal Before Discount": str(line.price * line.quantity),
                "SKU Platform Discount": "0",
                "SKU Seller Discount": str(line.discount),
                "SKU Subtotal After Discount": str(line.net),
                "Shipping Fee After Discount": str(sale.shipping),
                "Payment platform discount": str(sale.discount),
                "Buyer Service Fee": str(sale.fee),
                "Order Refund Amount": str(_tiktok_refunded(sale)),
                "Order Amount": str(sale.subtotal + sale.shipping + sale.fee),
                "Created Time": local,
                "Paid Time": "\t" if is_cod or not _tiktok_paid(sale) else local,
                "Delivered Time": local if TIKTOK_STATUSES[sale.state] == "Selesai" else "\t",
                "Recipient": "A*** L***",
                "Phone #": "(+62)812****01",
                "Zipcode": f"{sale.buyer.zip}\t",
                "Country": "Indonesia",
                "Province": sale.buyer.province,
                "Regency and City": sale.buyer.city,
                "Detail Address": "Jl. M*** 17",
                "Payment Method": "Bayar di tempat" if is_cod else "GoPay",
                "Purchase Channel": "Tokopedia" if sale.number % 2 else "TikTok",
            },
            TIKTOK_ORDERS,
        )
        for line in sale.lines
    ]


def _tiktok_paid(sale: Sale) -> int:
    total = sale.subtotal + sale.shipping + sale.fee
    if sale.number % 7 == 0 and sale.state in {"paid", "fulfilled"}:
        return 0  # cash on delivery, and not delivered yet
    return total if sale.state in {"paid", "fulfilled", "refunded", "partially_refunded"} else 0


def _tiktok_refunded(sale: Sale) -> int:
    total = sale.subtotal + sale.shipping + sale.fee
    return {"refunded": total, "partially_refunded": total // 4}.get(sale.state, 0)


def _expect_tiktok(sale: Sale) -> dict[str, Any]:
    total = sale.subtotal + sale.shipping + sale.fee
    return _expect_order(
        f"5791{sale.number:014d}", sale.at, sale, total, _tiktok_paid(sale), _tiktok_refunded(sale),
        is_fulfilled=sale.state in {"fulfilled", "refunded", "partially_refunded"},
    ) | {"customer": None, "shippingAddress.phone": None, "shippingAddress.zip": sale.buyer.zip}  # fmt: skip


SHOPEE_ORDERS = (
    "No. Pesanan|Status Pesanan|Alasan Pembatalan|Status Pembatalan/ Pengembalian|No. Resi|Opsi Pengiriman"
    "|Antar ke counter/ pick-up|Waktu Pengiriman Diatur|Waktu Pesanan Dibuat|Waktu Pembayaran Dilakukan|Tipe Pesanan"
    "|Metode Pembayaran|SKU Induk|Nama Produk|Nomor Referensi SKU|Nama Variasi|Harga Awal|Harga Setelah Diskon|Jumlah"
    "|Returned quantity|Subtotal Pesanan|Total Diskon|Berat Produk|Voucher Ditanggung Penjual|Cashback Koin"
    "|Voucher Ditanggung Shopee|Potongan Koin Shopee|Ongkos Kirim Dibayar oleh Pembeli|Total Pembayaran"
    "|Catatan dari Pembeli|Catatan|Username (Pembeli)|Nama Penerima|No. Telepon|Alamat Pengiriman|Kota/Kabupaten"
    "|Provinsi|Waktu Pesanan Selesai"
).split("|")
SHOPEE_STATUSES = {
    "pending": "Belum Bayar", "partially_paid": "Belum Bayar", "paid": "Perlu Dikirim", "fulfilled": "Sedang Dikirim",
    "cancelled": "Batal", "refunded": "Selesai", "partially_refunded": "Selesai",
}  # fmt: skip


def shopee_orders(shop: Shop) -> ForeignFile:
    """A workbook of text cells below a title; a dot separates thousands."""
    rows = [row for sale in shop.sales for row in _shopee_rows(sale)]
    content = write_xlsx([SHOPEE_ORDERS, *rows], ["Laporan Pesanan", "Toko Kopi"])
    return ForeignFile("shopee.xlsx", "shopee", "orders", content, [_expect_shopee(sale) for sale in shop.sales])


def _dotted(amount: int) -> str:
    return f"{amount:,}".replace(",", ".")


def _shopee_rows(sale: Sale) -> Rows:
    at = f"{sale.at.astimezone(WIB):%Y-%m-%d %H:%M}"
    returned = sale.state == "refunded"
    return [
        pick(
            {
                "No. Pesanan": f"2601{sale.number:06d}ABCD",
                "Status Pesanan": SHOPEE_STATUSES[sale.state],
                "Status Pembatalan/ Pengembalian": "Permintaan Disetujui" if returned else "",
                "Opsi Pengiriman": "Reguler (Cashless)-SPX",
                "Waktu Pesanan Dibuat": at,
                "Waktu Pembayaran Dilakukan": at if _shopee_paid(sale) else "",
                "Metode Pembayaran": "ShopeePay",
                "Nama Produk": line.title,
                "Nomor Referensi SKU": line.sku,
                "Harga Awal": _dotted(line.price + 1_000),
                "Harga Setelah Diskon": _dotted(line.price),
                "Jumlah": str(line.quantity),
                "Returned quantity": "0",
                "Berat Produk": "250 gr",
                "Voucher Ditanggung Penjual": _dotted(sale.discount),
                "Ongkos Kirim Dibayar oleh Pembeli": _dotted(sale.shipping),
                "Total Pembayaran": _dotted(_shopee_total(sale)),
                "Username (Pembeli)": "a****i",
                "Nama Penerima": "A****i",
                "No. Telepon": "******01",
                "Alamat Pengiriman": f"{sale.buyer.street}, {sale.buyer.city}, ID, {sale.buyer.zip}",
                "Kota/Kabupaten": sale.buyer.city,
                "Provinsi": sale.buyer.province,
            },
            SHOPEE_ORDERS,
        )
        for line in sale.lines
    ]


def _shopee_total(sale: Sale) -> int:
    return sum(line.price * line.quantity for line in sale.lines) - sale.discount + sale.shipping


def _shopee_paid(sale: Sale) -> int:
    return _shopee_total(sale) if sale.state in {"paid", "fulfilled", "refunded", "partially_refunded"} else 0


def _expect_shopee(sale: Sale) -> dict[str, Any]:
    return _expect_order(
        f"2601{sale.number:06d}ABCD", sale.at.replace(second=0), sale, _shopee_total(sale), _shopee_paid(sale),
        _shopee_total(sale) if sale.state == "refunded" else 0,
        is_fulfilled=sale.state in {"fulfilled", "refunded", "partially_refunded"},
    ) | {"customer": None, "shippingAddress.zip": sale.buyer.zip}  # fmt: skip


def indonesian_orders(shop: Shop) -> ForeignFile:
    """As a small shop keeps them in a spreadsheet that was saved as CSV on Windows."""
    header = ["No. Nota", "Tanggal", "Nama Pembeli", "No WA", "Nama Barang", "Kode Barang", "Harga", "Qty", "Diskon",
              "Ongkir", "Total Bayar", "Status", "Alamat", "Kota"]  # fmt: skip
    words = {"pending": "Belum bayar", "partially_paid": "Belum bayar", "paid": "Lunas", "fulfilled": "Selesai",
             "cancelled": "Batal", "refunded": "Refund", "partially_refunded": "Lunas"}  # fmt: skip
    rows, expected = [], []
    for sale in shop.sales:
        total = sum(line.price * line.quantity for line in sale.lines) - sale.discount + sale.shipping
        paid = total if words[sale.state] in {"Lunas", "Selesai", "Refund"} else 0
        for number, line in enumerate(sale.lines):
            first = number == 0
            rows.append(
                [f"INV-{sale.number}", f"{sale.at.astimezone(WIB):%d/%m/%Y}" if first else "",
                 sale.buyer.name if first else "", sale.buyer.phone[1:] if first else "", line.title, line.sku,
                 f"Rp {_dotted(line.price)},00", str(line.quantity), _dotted(sale.discount) if first else "",
                 _dotted(sale.shipping) if first else "", _dotted(total) if first else "",
                 words[sale.state] if first else "", sale.buyer.street if first else "",
                 sale.buyer.city if first else ""]
            )  # fmt: skip
        midnight = sale.at.astimezone(WIB).replace(hour=0, minute=0, second=0)
        expected.append(
            _expect_order(f"INV-{sale.number}", midnight, sale, total, paid,
                          paid if sale.state == "refunded" else 0, is_fulfilled=sale.state == "fulfilled")
            | {"customer.phoneNumber": sale.buyer.e164}
        )  # fmt: skip
    content = write_csv([header, *rows], ";", "cp1252")
    return ForeignFile("pesanan.csv", "spreadsheet", "orders", content, expected)


def _expect_sale(sale: Sale, order_id: str, total: int, *, has_line_discounts: bool = True) -> dict[str, Any]:
    expected = _expect_order(
        order_id, sale.at, sale, total, sale.paid, sale.refunded, is_fulfilled=sale.state == "fulfilled"
    )
    discounts = [line.discount for line in sale.lines] if has_line_discounts else [0] * len(sale.lines)
    return expected | {
        "customer.email": sale.buyer.email,
        "shippingAddress.zip": sale.buyer.zip,
        "lineDiscounts": discounts,
    }


def _expect_order(
    order_id: str, at: datetime, sale: Sale, total: int, paid: int, refunded: int, *, is_fulfilled: bool
) -> dict[str, Any]:
    return {
        "orderId": order_id,
        "createdAt": at,
        "total": total,
        "totalPaid": paid,
        "totalRefunded": refunded,
        "financialStatus": _status(total, paid, refunded),
        "fulfillmentStatus": "fulfilled" if is_fulfilled else "unfulfilled",
        "status": "cancelled" if sale.state == "cancelled" else "active",
        "lines": [(line.title, line.quantity, line.price) for line in sale.lines],
    }


def _status(total: int, paid: int, refunded: int) -> str:
    if not paid:
        return "pending"
    if refunded:
        return "refunded" if refunded == paid else "partially_refunded"
    return "paid" if paid == total else "partially_paid"


# Products

SHOPIFY_PRODUCTS_OLD = (
    "Handle|Title|Body (HTML)|Vendor|Product Category|Type|Tags|Published|Option1 Name|Option1 Value"
    "|Option1 Linked To|Option2 Name|Option2 Value|Variant SKU|Variant Grams|Variant Inventory Tracker"
    "|Variant Inventory Qty|Variant Inventory Policy|Variant Price|Variant Compare At Price|Image Src|Image Position"
    "|Image Alt Text|Gift Card|SEO Title|Variant Image|Variant Weight Unit|Cost per item|Status"
).split("|")
SHOPIFY_PRODUCTS_NEW = (
    "Title|URL handle|Description|Vendor|Product category|Type|Tags|Published on online store|Status|SKU|Barcode"
    "|Option1 name|Option1 value|Option1 Linked To|Price|Price / International|Compare-at price|Inventory tracker"
    "|Inventory quantity|Continue selling when out of stock|Weight value (grams)|Product image URL|Image position"
    "|Image alt text|Variant image URL|Gift card|SEO title"
).split("|")


def shopify_products_old(shop: Shop) -> ForeignFile:
    rows = []
    for article in shop.articles:
        sizes = article.sizes or ["Default Title"]
        for number, size in enumerate(sizes):
            first = {
                "Title": article.name, "Body (HTML)": "<p>Enak</p>", "Type": "Oleh-oleh", "Tags": "lokal, baru",
                "Published": "TRUE", "Option1 Name": "Ukuran" if article.sizes else "Title", "Status": "active",
                "Image Src": f"https://img.example/{article.number}.jpg", "Image Position": "1",
            }  # fmt: skip
            rows.append(pick(_shopify_variant(article, size) | (first if number == 0 else {}), SHOPIFY_PRODUCTS_OLD))
        extra = {"Handle": f"art-{article.number}", "Image Src": "https://img.example/extra.jpg", "Image Position": "2"}
        rows.append(pick(extra, SHOPIFY_PRODUCTS_OLD))
    expected = [
        _expect_article(article, f"art-{article.number}")
        | {"medias": ["https://img.example/extra.jpg"], "tags": ["lokal", "baru"], "types": ["Oleh-oleh"]}
        for article in shop.articles
    ]
    content = write_csv([SHOPIFY_PRODUCTS_OLD, *rows])
    return ForeignFile("shopify-products-old.csv", "shopify", "products", content, expected)


def _shopify_variant(article: Article, size: str) -> dict[str, str]:
    return {
        "Handle": f"art-{article.number}",
        "Option1 Value": size,
        "Variant SKU": article.sku("" if size == "Default Title" else size),
        "Variant Inventory Tracker": "" if article.stock is None else "shopify",
        "Variant Inventory Qty": "" if article.stock is None else str(article.stock or -2),
        "Variant Price": f"{article.price}.00",
        "Variant Compare At Price": f"{article.before}.00" if article.before else "",
    }


def shopify_products_new(shop: Shop) -> ForeignFile:
    rows = []
    for article in shop.articles:
        for number, size in enumerate(article.sizes or ["Default Title"]):
            old = _shopify_variant(article, size)
            row = {
                "URL handle": old["Handle"], "Option1 value": size, "SKU": f"'{old['Variant SKU']}",
                "Price": old["Variant Price"], "Compare-at price": old["Variant Compare At Price"],
                "Inventory tracker": old["Variant Inventory Tracker"],
                "Inventory quantity": old["Variant Inventory Qty"],
            }  # fmt: skip
            row["SKU"] = old["Variant SKU"]
            if number == 0:
                row |= {"Title": article.name, "Description": "Enak", "Status": "Active",
                        "Option1 name": "Ukuran" if article.sizes else "Title"}  # fmt: skip
            rows.append(pick(row, SHOPIFY_PRODUCTS_NEW))
    expected = [_expect_article(article, f"art-{article.number}") for article in shop.articles]
    content = write_csv([SHOPIFY_PRODUCTS_NEW, *rows])
    return ForeignFile("shopify-products-new.csv", "shopify", "products", content, expected)


WOO_PRODUCTS = (
    "ID|Type|SKU|GTIN, UPC, EAN, or ISBN|Name|Published|Is featured?|Visibility in catalog|Short description"
    "|Description|Tax status|In stock?|Stock|Low stock amount|Backorders allowed?|Weight (kg)|Sale price"
    "|Regular price|Categories|Tags|Images|Parent|Position|Attribute 1 name|Attribute 1 value(s)|Attribute 1 visible"
    "|Attribute 1 global|Meta: _seo"
).split("|")


def woocommerce_products(shop: Shop) -> ForeignFile:
    """Variations below all products, by the parent's SKU or id."""
    products, variations = [], []
    for article in shop.articles:
        price = {"Sale price": _comma(article.price), "Regular price": _comma(article.before)} if article.before else {
            "Regular price": _comma(article.price)}  # fmt: skip
        stock = {"Stock": "" if article.stock is None else str(article.stock)}
        product = {
            "ID": str(500 + article.number), "SKU": f"ART-{article.number}", "Name": article.name, "Published": "1",
            "Visibility in catalog": "visible", "Categories": "Oleh-oleh > Khas, Baru", "Tags": "lokal",
            "Images": "https://img.example/a.jpg, https://img.example/b.jpg",
        }  # fmt: skip
        if not article.sizes:
            products.append(pick(product | price | stock | {"Type": "simple"}, WOO_PRODUCTS))
            continue
        attribute = {"Attribute 1 name": "Ukuran", "Attribute 1 value(s)": ", ".join(article.sizes)}
        products.append(pick(product | attribute | {"Type": "variable"}, WOO_PRODUCTS))
        for number, size in enumerate(article.sizes):
            parent = f"ART-{article.number}" if number else f"id:{500 + article.number}"
            row = {"ID": "1", "Type": "variation", "SKU": article.sku(size), "Name": f"{article.name} - {size}",
                   "Published": "1", "Parent": parent, "Attribute 1 name": "Ukuran",
                   "Attribute 1 value(s)": size}  # fmt: skip
            variations.append(pick(row | price | stock, WOO_PRODUCTS))
    expected = [
        _expect_article(article, f"ART-{article.number}", f"ART-{article.number}")
        | {"types": ["Khas", "Baru"], "media": "https://img.example/a.jpg"}
        for article in shop.articles
    ]
    for article, one in zip(shop.articles, expected, strict=True):
        one["variants"] = sorted(one["variants"]) if article.sizes else one["variants"]
    content = write_csv([WOO_PRODUCTS, *products, *variations], encoding="utf-8-sig")
    return ForeignFile("woo-products.csv", "woocommerce", "products", content, expected)


def medusa_products(shop: Shop) -> ForeignFile:
    header = (
        "Product Id|Product Title|Product Handle|Product Status|Product Thumbnail|Product Type Id|Product Image 1"
        "|Product Tag 1|Variant Id|Variant Title|Variant Sku|Variant Barcode|Variant Manage Inventory"
        "|Variant Price EUR|Variant Price Indonesia [IDR]|Variant Price IDR|Variant Option 1 Name"
        "|Variant Option 1 Value"
    ).split("|")
    rows = [
        pick(
            {
                "Product Id": f"prod_{article.number}",
                "Product Title": article.name,
                "Product Handle": f"art-{article.number}",
                "Product Status": "published",
                "Product Tag 1": "lokal",
                "Variant Title": size or article.name,
                "Variant Sku": article.sku(size),
                "Variant Price EUR": "9.5",
                "Variant Price IDR": str(article.price),
                "Variant Option 1 Name": "Ukuran" if size else "",
                "Variant Option 1 Value": size,
            },
            header,
        )
        for article in shop.articles
        for size in article.sizes or [""]
    ]
    expected = []
    for article in shop.articles:
        one = _expect_article(article, f"art-{article.number}")
        one["variants"] = [(title, sku, price, None) for title, sku, price, _ in one["variants"]]
        expected.append(one | {"compareAtPrice": None})
    return ForeignFile("medusa.csv", "medusa", "products", write_csv([header, *rows]), expected)


def indonesian_products(shop: Shop) -> ForeignFile:
    """A workbook with numbers, a title and a row of totals."""
    header = ["Kode Barang", "Nama Barang", "Harga", "Stok", "Kategori", "Keterangan"]
    rows: list[list[Any]] = [
        [a.sku(), a.name, a.price, a.stock if a.stock is not None else "", "Makanan", "Enak"] for a in shop.articles
    ]
    content = write_xlsx([header, *rows, ["Total", "", 123]], ["DAFTAR BARANG"])
    expected = [
        {"productId": a.sku(), "name": a.name, "types": ["Makanan"],
         "variants": [(a.name, a.sku(), a.price, a.stock)]}
        for a in shop.articles
    ]  # fmt: skip
    return ForeignFile("barang.xlsx", "spreadsheet", "products", content, expected)


def _expect_article(article: Article, product_id: str, sku: str | None = None) -> dict[str, Any]:
    stock = None if article.stock is None else article.stock
    titles = [(size, article.sku(size)) for size in article.sizes] or [(article.name, sku or article.sku())]
    return {
        "productId": product_id,
        "name": article.name,
        "status": "active",
        "compareAtPrice": article.before,
        "variants": [(title, code, article.price, stock) for title, code in titles],
    }


BUILDERS: list[Callable[[Shop], ForeignFile]] = [
    shopify_customers_new, shopify_customers_old, woocommerce_customers, indonesian_customers,
    shopify_products_old, shopify_products_new, woocommerce_products, medusa_products, indonesian_products,
    shopify_orders, shopify_orders_old, woocommerce_orders, tokopedia_orders, tiktok_orders, shopee_orders,
    indonesian_orders,
]  # fmt: skip
