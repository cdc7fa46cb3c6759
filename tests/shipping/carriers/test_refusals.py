"""Refusals and empty responses with a successful status; and input that must never reach a carrier."""

from typing import Any

import pytest

from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    Cancelled,
    CancelRefused,
    CarrierAccount,
    CarrierAway,
    Rejected,
)
from sapa.shipping.carriers.registry import CARRIERS
from tests.shipping.carriers.cases import CREDENTIALS, REFERENCE, SHIPPED
from tests.shipping.carriers.peer import Peer, Reply, open_connection, open_peer
from tests.shipping.carriers.simulated import build_request

TOKEN = Reply(body={"token": "dash-token"})
BY_AWB = {"kiriminaja"}
"""Carriers without a path by order number: their refused cancellations are among the fixtures."""
ALIVE = {
    "gosend": Reply(body={"orderNo": "GK-11-170563", "status": "allocated"}),
    "dash": Reply(body={"deliveryID": "dlv-77", "status": "PICKING_UP"}),
    "biteship": Reply(body={"id": "5dd599ebdefcd4158eb8470b", "status": "allocated"}),
}
NO = {
    "gosend": Reply(body={"errors": [{"message": "Too late"}]}),
    "dash": Reply(body={"error": "Too late"}),
    "biteship": Reply(body={"success": False, "error": "Too late", "code": 40002011}),
}
NOTHING = [
    Reply(text="<html>maintenance</html>"),
    Reply(text=""),
    Reply(body=["cancelled"]),
    Reply(302, text="", headers={"location": "/login"}),
]


async def ask(adapter: str, operation: str, *replies: Reply, **arguments: Any) -> tuple[Any, Peer]:
    """The outcome of an operation, errors included."""
    async with open_peer() as peer, open_connection(adapter, peer.address, CREDENTIALS[adapter]) as connection:
        peer.replies = [*([TOKEN] if adapter == "dash" else []), *replies]
        try:
            return await _do(connection, operation, **arguments), peer
        except (CarrierAway, BadCredentials) as error:
            return error, peer


async def _do(connection: CarrierAccount, operation: str, **arguments: Any) -> Any:
    return await getattr(CARRIERS[connection.adapter], operation)(connection, **arguments)


@pytest.mark.parametrize("adapter", ALIVE)
async def test_a_cancellation_counts_only_where_the_carrier_confirms_it(adapter: str) -> None:
    arguments = {"shipment": SHIPPED[adapter], "reason": "Late"}
    for reply in NOTHING:
        outcome, _ = await ask(adapter, "cancel", reply, **arguments)
        assert isinstance(outcome, CarrierAway), (reply, outcome)
    refused, _ = await ask(adapter, "cancel", NO[adapter], ALIVE[adapter], **arguments)
    assert refused == CancelRefused("Too late")
    unsure, _ = await ask(adapter, "cancel", NO[adapter], Reply(500), **arguments)
    assert unsure == CancelRefused("Too late", is_sure=False)
    granted, _ = await ask(adapter, "cancel", Reply(204, text=""), **arguments)
    assert granted == Cancelled()


@pytest.mark.parametrize(
    ("adapter", "reply", "words"),
    [
        ("kiriminaja", Reply(body={"status": False, "text": "Unauthenticated."}), "refuses the API key"),
        ("gosend", Reply(400, headers={"Error-Message": "Invalid client credentials"}), "Invalid client credentials"),
        ("gosend", Reply(body={"errors": [{"message": "Unknown client"}]}), "Unknown client"),
    ],
)
async def test_an_account_that_a_carrier_refuses_does_not_work(adapter: str, reply: Reply, words: str) -> None:
    outcome, _ = await ask(adapter, "verify", reply)
    assert isinstance(outcome, BadCredentials)
    assert words in str(outcome)


async def test_a_test_of_an_account_is_not_content_with_an_earlier_token() -> None:
    async with open_peer() as peer, open_connection("dash", peer.address, CREDENTIALS["dash"]) as connection:
        peer.replies = [TOKEN, Reply(401)]
        await CARRIERS["dash"].verify(connection)
        with pytest.raises(BadCredentials):
            await CARRIERS["dash"].verify(connection)


@pytest.mark.parametrize("adapter", ["kiriminaja", "biteship"])
async def test_a_refusal_is_no_list_of_places_and_no_sign_of_a_good_account(adapter: str) -> None:
    reply = Reply(body={"status": False, "success": False, "text": "Account suspended", "error": "Account suspended"})
    places = {"level": "districts", "parent": None, "search": "Menteng"}
    for operation, arguments in (("list_areas", places), ("verify", {})):
        outcome, _ = await ask(adapter, operation, reply, **arguments)
        assert isinstance(outcome, CarrierAway)
        assert "Account suspended" in str(outcome)


@pytest.mark.parametrize("adapter", ALIVE)
@pytest.mark.parametrize("number", ["../../admin/keys?x=1&y=#z", "a/b", "..", "%2e%2e/x"])
async def test_a_number_is_one_part_of_a_path_whatever_stands_in_it(adapter: str, number: str) -> None:
    odd = SHIPPED[adapter].__class__(REFERENCE, number, None, None, None, False)
    _, tracked = await ask(adapter, "track", ALIVE[adapter], shipment=odd)
    _, cancelled = await ask(adapter, "cancel", Reply(204, text=""), shipment=odd, reason="Late")
    for asked in [*tracked.asked, *cancelled.asked]:
        whole = {"/v1/auth/providers/token", "/gokilat/v10/booking/cancel"}
        assert asked["path"] in whole or asked["path"].removesuffix("/cancel").endswith(f"/{number}")
        assert "x" not in asked["query"]
    assert (number != "..") == any(number in asked["path"] for asked in tracked.asked)


async def test_biteship_is_booked_with_a_place_to_go_to_or_not_at_all() -> None:
    shipment = build_request(service_code="jne:reg")
    bare = type(shipment.origin)(name="Toko", phone="0812", address="Jl. Raya", kecamatan_id=1, kelurahan_id=2)
    lost = type(shipment)(bare, shipment.destination, shipment.parcel, shipment.service)
    outcome, peer = await ask("biteship", "book", Reply(500), shipment=lost, reference=REFERENCE)
    assert isinstance(outcome, Rejected)
    assert (outcome.code, peer.asked) == ("MISSING_POSTAL_CODE", [])
    assert "zip of the origin" in outcome.reason


async def test_biteship_refuses_with_a_status_that_says_yes() -> None:
    reply = Reply(body={"success": False, "error": "No balance", "code": 40002099})
    arguments = {"shipment": build_request(service_code="jne:reg"), "reference": REFERENCE}
    outcome, peer = await ask("biteship", "book", reply, **arguments)
    assert (outcome, len(peer.asked)) == (Rejected("40002099", "No balance"), 1)
    taken, _ = await ask(
        "biteship", "book", Reply(body={"success": True, "id": "o-1", "status": "confirmed"}), **arguments
    )
    assert isinstance(taken, Booked)


async def test_kiriminaja_is_not_asked_for_a_way_of_handing_over_that_it_does_not_offer() -> None:
    row = {"service": "jne", "service_type": "REG23", "cost": "12000", "drop": False}
    service: dict[str, Any] = {"service_code": "jne:REG23", "package_handover": "DROP_OFF"}
    prices = Reply(body={"status": True, "results": [row]})
    outcome, peer = await ask("kiriminaja", "book", prices, shipment=build_request(**service), reference=REFERENCE)
    assert isinstance(outcome, Rejected)
    assert (outcome.code, len(peer.asked)) == ("HANDOVER_NOT_OFFERED", 1)
