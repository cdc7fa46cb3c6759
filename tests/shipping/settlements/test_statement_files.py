"""Statements as carriers' dashboards export them."""

from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.http.errors import Invalid
from sapa.shipping.settlements.statement_files import parse_statement
from sapa.shipping.settlements.types import MAX_LINES, SettlementLineIn
from sapa.values.json import encode

ONE = SettlementLineIn(
    parcel="JNE0001", amount=Decimal(132_640), cod_amount=Decimal(150_000), cod_fee=Decimal(4_860),
    carrier_fee=Decimal(12_000), insurance_fee=Decimal(500),
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "awb,cod amount,cod fee,shipping fee,insurance fee,amount\nJNE0001,150000,4860,12000,500,132640\n",
        "No. Resi;Nilai COD;Biaya COD;Ongkir;Asuransi;Dana Cair\nJNE0001;150.000;4.860;12.000;500;132.640\n",
        "sep=;\nRESI;COD;FEE COD;ONGKIR;ASURANSI;NET;;\nJNE0001;Rp 150.000,00;Rp4.860;Rp. 12.000;500;132.640,00;;\n",
        '\ufeffwaybill_id,cod,cod_fee,shipping_cost,insurance,net_amount\n\'JNE0001,"150,000","4,860","12,000",500,132640.0\n\n',
        "Kurir\tResi\tCOD\tFee COD\tOngkir\tAsuransi\tNet\nJNE\tJNE0001\t150000\t4860\t12000\t500\t132640\n",
        "awb,cod,cod fee,ongkir,asuransi,net\nJNE0001,150000,4860,12000,500,132640\nTOTAL,150000,,,,132640\n",
        'awb,cod,cod fee,ongkir,asuransi,net\n"=""JNE0001""",150000,4860,12000,500,132640\n',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_a_csv(text: str, encoding: str) -> None:
    if encoding == "cp1252":
        text = text.removeprefix("\ufeff")
    assert parse_statement("text/csv", text.encode(encoding)) == [ONE]


def test_ndjson() -> None:
    content = encode(ONE) + b'\n\n{"parcel": "JNE2", "amount": -12000}\n'
    assert parse_statement("application/x-ndjson", content) == [
        ONE,
        SettlementLineIn(parcel="JNE2", amount=Decimal(-12_000)),
    ]


@pytest.mark.parametrize(
    ("cell", "amount"),
    [("0", 0), ("-12.000", -12_000), ("(12,000)", -12_000), ("1.234.567", 1_234_567), ("12,5", "12.5"), ("IDR 7", 7)],
)
def test_an_amount(cell: str, amount: int | str) -> None:
    (line,) = parse_statement("text/csv", f'awb;amount\nA;"{cell}"\n'.encode())
    assert line.amount == Decimal(amount)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no parcels"),
        (b"awb,amount\n", "no parcels"),
        (b"awb;amount\n582230008329223;1\n5,8223E+14;1\n", "Line 3: .* shortened .* to 5,8223E"),
        (b"customer,amount\nAyu,1\n", "no column for the parcel"),
        (b"awb,weight\nJNE,1\n", "no column for the amount"),
        (b"awb,amount\nJNE,\n", "Line 2 has no amount"),
        (b"awb,amount\n\nA,1\nJNE,a lot\n", "Line 4: amount must be an amount"),
        (b"awb,amount\n" + b"J" * 101 + b",1\n", "Line 2"),
        (b"awb,amount\nJ\x00,1\n", "not text"),
        (b"awb,amount\n" + b"A,1\n" * (MAX_LINES + 1), "Split it"),
    ],
)
def test_a_file_that_cannot_be_used(content: bytes, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        parse_statement("text/csv", content)


@pytest.mark.parametrize("content", [b"{", b'{"parcel": "A"}', b'{"parcel": "A", "amount": "1"}', b'{"awb": "A"}'])
def test_ndjson_that_cannot_be_used(content: bytes) -> None:
    with pytest.raises(Invalid, match="Line 1"):
        parse_statement("application/x-ndjson", content)


@given(st.binary(max_size=300), st.sampled_from(["text/csv", "application/x-ndjson"]))
def test_any_bytes_are_read_or_refused(content: bytes, media_type: str) -> None:
    with suppress(Invalid):
        assert parse_statement(media_type, b"awb,amount\n" + content)
