"""Orders as other systems export them, with their columns and quirks."""

from datetime import datetime
from typing import Any

from tests.imports.foreign.files import WIB, WITA, ForeignFile, Rows, comma, pick, write_csv, write_xlsx
from tests.imports.shops import Line, Sale, Shop

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
    """A decimal comma, a semicolon between cells, the order's cells in every row, two coupons that double the rows,
    costs after coupons, quantities without refunded units, and refunds in rows of their own."""
    rows, expected = [], []
    for sale in shop.sales:
        rows += _woo_rows(sale) + _woo_refund_rows(sale)
        expected.append(_expect_woo(sale))
    content = write_csv([WOO_ORDERS, *rows], ";")
    return ForeignFile("woo-orders.csv", "woocommerce", "orders", content, expected, ["--time-zone", "Asia/Makassar"])


def _woo_rows(sale: Sale) -> Rows:
    buyer = sale.buyer
    discount = _woo_discount(sale)
    coupons = [("HEMAT", discount - 100), ("EKSTRA", 100)] if discount else [("", 0)]
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
        "Cart Discount Amount": comma(discount),
        "Order Subtotal Amount": comma(_woo_subtotal(sale)),
        "Order Shipping Amount": comma(sale.shipping),
        "Shipping Method Title": "JNE",
        "Order Refund Amount": comma(_woo_refunded(sale)),
        "Order Total Amount": comma(_woo_total(sale)),
        "Order Total Tax Amount": comma(sale.tax),
    }
    return [
        pick(
            order
            | {
                "SKU": line.sku,
                "Item #": str(number),
                "Item Name": line.title,
                "Quantity (- Refund)": str(line.quantity - _woo_refunded_units(sale, number)),
                "Item Cost": comma(_woo_cost(sale, line)),
                "Coupon Code": code,
                "Discount Amount": comma(amount) if code else "",
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
            "Item Name": title, "Quantity (- Refund)": "-1", "Item Cost": comma(-_woo_refunded(sale))}  # fmt: skip
    refund = {"Order Number": str(70_000 + sale.number), "Order Status": "Refunded", "Item Name": title,
              "Order Total Amount": comma(-_woo_refunded(sale)), "Quantity (- Refund)": "-1"}  # fmt: skip
    return [pick(unit, WOO_ORDERS), pick(refund, WOO_ORDERS)]


def _woo_subtotal(sale: Sale) -> int:
    return sum(line.price * line.quantity for line in sale.lines)


def _woo_discount(sale: Sale) -> int:
    return _woo_subtotal(sale) // 10 if sale.discount else 0


def _woo_cost(sale: Sale, line: Line) -> int:
    return line.price * 9 // 10 if sale.discount else line.price


def _woo_refunded_units(sale: Sale, number: int) -> int:
    """One unit of the first line, or all of an order of one line."""
    if sale.state == "refunded" and len(sale.lines) == 1:
        return sale.lines[0].quantity
    return 1 if sale.state == "partially_refunded" and number == 1 else 0


def _woo_total(sale: Sale) -> int:
    return _woo_subtotal(sale) - _woo_discount(sale) + sale.shipping + (sale.tax if sale.is_tax_added else 0)


def _woo_refunded(sale: Sale) -> int:
    unit = _woo_cost(sale, sale.lines[0])
    return {"refunded": _woo_total(sale), "partially_refunded": unit}.get(sale.state, 0)


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
