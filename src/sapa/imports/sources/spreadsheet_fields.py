"""The fields that a column of any spreadsheet can be mapped to, and the headers that people write for them."""

import re
from typing import Literal

from msgspec import Struct

from sapa.imports.mappings.types import ImportMapping
from sapa.imports.tables.types import normalise_header
from sapa.imports.types import Resource, UnusableFile

FieldKind = Literal["text", "id", "phone", "amount", "quantity", "date", "flag", "tags", "data"]


class MappableField(Struct, frozen=True):
    """A field that a column can be mapped to."""

    name: str
    kind: FieldKind
    headers: tuple[str, ...]
    """Headers for which it is proposed, the likeliest first."""


def _field(name: str, kind: FieldKind, headers: str) -> MappableField:
    return MappableField(name, kind, tuple(header.strip() for header in headers.split("|")))


_ADDRESS = [
    _field(
        "address.address1", "text", "alamat|alamat lengkap|address|address1|street|jalan|alamat 1|addresses.1.address1"
    ),
    _field("address.address2", "text", "kelurahan|desa|kecamatan|address2|alamat 2|kel|kec|addresses.1.address2"),
    _field("address.city", "text", "kota|kabupaten|kota/kabupaten|kab/kota|city|town|addresses.1.city"),
    _field("address.province", "text", "provinsi|propinsi|province|state|addresses.1.province"),
    _field("address.zip", "text", "kode pos|kodepos|zip|zip code|postcode|postal code|addresses.1.zip"),
    _field("address.country", "text", "negara|country|addresses.1.country"),
]
_PERSON = [
    _field(
        "name",
        "text",
        "nama lengkap|nama pelanggan|nama pembeli|nama customer|nama|name|full name|customer name|customer",
    ),
    _field("firstName", "text", "nama depan|first name|firstname|customer.firstname"),
    _field("lastName", "text", "nama belakang|last name|lastname|surname|customer.lastname"),
    _field("email", "text", "email|e-mail|surel|alamat email|email address|customer.email"),
    _field(
        "phoneNumber",
        "phone",
        "no hp|nomor hp|no whatsapp|nomor whatsapp|wa|no wa|whatsapp|telepon|telp|no telp|no telepon|nomor telepon|hp"
        "|handphone|phone|phone number|phonenumber|mobile|customer.phonenumber",
    ),
]  # fmt: skip

FIELDS: dict[Resource, list[MappableField]] = {
    "customers": [
        _field("externalId", "id", "id pelanggan|kode pelanggan|no pelanggan|customer id|externalid|id|kode"),
        *_PERSON,
        *_ADDRESS,
        _field("tags", "tags", "label|grup|group|tags|tag|kategori|segmen"),
        _field("subscribes", "flag", "langganan|newsletter|accepts marketing|subscribe|promo"),
        _field("imageUrl", "text", "foto|imageurl|image|photo"),
        _field("createdOn", "data", "tanggal daftar|tgl daftar|registered|created at"),
    ],
    "orders": [
        _field(
            "orderId",
            "id",
            "no pesanan|nomor pesanan|no order|nomor order|no invoice|nomor invoice|no nota|no faktur|invoice|order id"
            "|order number|orderid|id pesanan|kode transaksi|no transaksi",
        ),
        _field(
            "createdAt",
            "date",
            "tanggal|tgl|tanggal pesanan|tanggal order|tgl order|tgl transaksi|tanggal transaksi|date|order date"
            "|created at|createdat|waktu",
        ),
        *_PERSON,
        *_ADDRESS,
        _field(
            "line.title",
            "text",
            "nama barang|nama produk|produk|barang|item|product|product name|title|lineitems.1.title",
        ),
        _field("line.sku", "text", "kode barang|kode produk|sku"),
        _field("line.price", "amount", "harga|harga satuan|price|unit price|lineitems.1.price"),
        _field("line.quantity", "quantity", "jumlah|qty|kuantitas|quantity|banyak|jml|lineitems.1.quantity"),
        _field("line.discount", "amount", "diskon barang|diskon item|line discount"),
        _field("discount", "amount", "diskon|potongan|discount|voucher"),
        _field("shipping", "amount", "ongkir|ongkos kirim|biaya kirim|shipping|shipping cost|delivery fee"),
        _field("tax", "amount", "pajak|ppn|tax"),
        _field("fee", "amount", "biaya admin|biaya layanan|fee|biaya lain"),
        _field("total", "amount", "total|total bayar|grand total|total pembayaran|total harga|jumlah bayar"),
        _field("orderStatus", "text", "status|status pesanan|order status"),
        _field("paymentStatus", "text", "status bayar|status pembayaran|pembayaran|payment status|financialstatus"),
        _field("paymentMethod", "text", "metode pembayaran|metode bayar|cara bayar|payment method"),
        _field("shippingMethod", "text", "kurir|ekspedisi|jasa kirim|shipping method|courier"),
        _field("currency", "text", "mata uang|currency"),
        _field("notes", "text", "catatan|keterangan|notes|note"),
        _field("tags", "tags", "label|tags|tag"),
    ],
    "products": [
        _field("productId", "id", "id produk|product id|productid|handle"),
        _field("sku", "id", "kode barang|kode produk|sku|kode|barcode"),
        _field("name", "text", "nama barang|nama produk|produk|barang|product|product name|name|nama|title"),
        _field("variant", "text", "varian|variasi|variant|ukuran|size|variation"),
        _field("price", "amount", "harga|harga jual|harga satuan|price"),
        _field("compareAtPrice", "amount", "harga coret|harga normal|compare at price|compareatprice"),
        _field("inventoryQuantity", "quantity", "stok|stock|jumlah stok|persediaan|sisa|inventoryquantity|qty"),
        _field("description", "text", "deskripsi|keterangan|description"),
        _field("status", "text", "status"),
        _field("tags", "tags", "label|tags|tag"),
        _field("types", "tags", "kategori|jenis|category|type|types"),
        _field("media", "text", "foto|gambar|image|image url|media"),
    ],
}

JOINED = {"address.address2"}
"""Fields that several columns make up: a village and its district."""

REQUIRED: dict[Resource, list[tuple[str, ...]]] = {
    "customers": [("email", "phoneNumber")],
    "orders": [("orderId",), ("line.title",), ("line.price", "total")],
    "products": [("name",), ("price",)],
}
"""Of each group one field must be mapped. An order without an id would be imported again by a second run."""


_PARENTS = {
    "addresses": "address.",
    "shippingAddress": "address.",
    "lineItems": "line.",
    "variants": "",
    "customer": "",
}
_READ_FROM = {
    "firstName": "name", "lastName": "name", "subscriptionStatus": "subscribes", "title": "variant",
    "name": "line.title", "shippingLines": "shipping", "discounts": "discount", "fees": "fee", "taxes": "tax",
    "method": "paymentMethod",
}  # fmt: skip
"""Fields of the API that are read from a field of another name."""


def find_column(mapping: ImportMapping, path: str) -> str | None:
    """The column of the file that a field of the API was read from; `path` may be the column itself."""
    columns = {normalise_header(name): name for name in mapping.columns}
    if normalise_header(path) in columns:
        return columns[normalise_header(path)]
    parent, _, last = re.sub(r"\[\d+\]|\.\d+", "", path).rpartition(".")
    first = (parent or last).partition(".")[0]
    names = [_PARENTS.get(parent, f"{parent}.") + last if parent else last, _READ_FROM.get(last), _READ_FROM.get(first)]
    by_field = {field: name for name, field in reversed(mapping.columns.items()) if field}
    return next((by_field[name] for name in names if name in by_field), None)


def simplify_header(header: str) -> str:
    """`No. HP` and `no_hp` are the same."""
    return " ".join(re.sub(r"[._:*#()\-]+", " ", normalise_header(header)).split())


def propose_mapping(resource: Resource, names: list[str]) -> ImportMapping:
    """The likeliest field of each column; each field once, but for those that join columns."""
    by_header: dict[str, tuple[int, str]] = {}
    for field in FIELDS[resource]:
        for rank, header in enumerate(field.headers):
            by_header.setdefault(simplify_header(header), (rank, field.name))
    found: dict[str, tuple[int, str]] = {}
    columns: dict[str, str | None] = {}
    for name in names:
        match = by_header.get(simplify_header(name))
        columns[name] = None
        if match is None:
            continue
        rank, field_name = match
        if field_name in JOINED:
            columns[name] = field_name
            continue
        other = found.get(field_name)
        if other is None or rank < other[0]:
            if other is not None:
                columns[other[1]] = None
            found[field_name] = (rank, name)
            columns[name] = field_name
    return ImportMapping(columns=columns)


def check_mapping(resource: Resource, mapping: ImportMapping, names: list[str]) -> dict[str, MappableField]:
    """The field of each column by its normalised name; raises UnusableFile with what is wrong."""
    fields = {field.name: field for field in FIELDS[resource]}
    keys = {normalise_header(name) for name in names}
    columns: dict[str, MappableField] = {}
    for column, name in mapping.columns.items():
        if name is None:
            continue
        if name not in fields:
            raise UnusableFile(f"The mapping names the unknown field {name}; use one of {', '.join(fields)}.")
        if normalise_header(column) not in keys:
            raise UnusableFile(f"The mapping names the column {column}, which the file does not have.")
        columns[normalise_header(column)] = fields[name]
    mapped = {field.name for field in columns.values()}
    for group in REQUIRED[resource]:
        if not mapped & set(group):
            raise UnusableFile(f"No column is mapped to {' or '.join(group)}, which {resource} need. Map one to it.")
    return columns
