"""Carriers' own labels: the file is fetched from the address that the carrier names, and only if it may be."""

import pytest

from sapa.shipping.carriers.abilities import LabelCarrier
from sapa.shipping.carriers.interface import CarrierAway
from sapa.shipping.carriers.registry import CARRIERS
from tests.shipping.carriers.cases import CREDENTIALS
from tests.shipping.carriers.peer import Reply, open_connection, open_peer

ADAPTER = next(name for name, carrier in CARRIERS.items() if isinstance(carrier, LabelCarrier))
PDF = "%PDF-1.7 a label"


async def fetch(address: str | None, file: Reply) -> bytes:
    """`address` is the file's; None for one at the carrier."""
    carrier = CARRIERS[ADAPTER]
    assert isinstance(carrier, LabelCarrier)
    async with open_peer() as peer, open_connection(ADAPTER, peer.address, CREDENTIALS[ADAPTER]) as connection:
        url = address or f"{peer.address}/files/labels.pdf"
        peer.replies = [Reply(body={"status": True, "text": "Success", "data": {"data": {"url": url}}}), file]
        try:
            return await carrier.fetch_labels(connection, ["JNE0001234567"])
        finally:
            assert peer.asked[0]["body"] == {"awb": ["JNE0001234567"]}


async def test_a_file_at_the_carrier_is_fetched() -> None:
    assert await fetch(None, Reply(text=PDF)) == PDF.encode()


@pytest.mark.parametrize("file", [Reply(text="<html>"), Reply(status=404, text=PDF), Reply(breaks_off=True)])
async def test_what_is_no_file_is_refused(file: Reply) -> None:
    with pytest.raises(CarrierAway):
        await fetch(None, file)


@pytest.mark.parametrize(
    "address", ["https://127.0.0.1:9/x", "https://169.254.169.254/x", "http://shop.example/x", "file:///etc/passwd"]
)
async def test_an_address_elsewhere_goes_through_the_guard(address: str) -> None:
    with pytest.raises(CarrierAway, match="could not be fetched"):
        await fetch(address, Reply(text=PDF))
