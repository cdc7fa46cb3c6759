"""Carriers that echo our credentials: no message contains them."""

import traceback
from typing import Any

import pytest

from sapa.outbound.client import NotSent, Unclear
from sapa.shipping.carriers.calls import join_notes, scrub_text, shorten
from sapa.shipping.carriers.interface import BadCredentials, CarrierAccount, CarrierAway
from sapa.shipping.carriers.kiriminaja.calls import build_note
from sapa.shipping.carriers.registry import CARRIERS
from tests.shipping.carriers.cases import CREDENTIALS, REFERENCE, SHIPPED
from tests.shipping.carriers.peer import Reply, open_connection, open_peer
from tests.shipping.carriers.simulated import build_request
from tests.shipping.carriers.test_failures import TOKEN, service

SECRETS = [value for fields in CREDENTIALS.values() for value in fields.values() if value != "X-Signature"]


async def collect_messages(adapter: str, connection: CarrierAccount) -> str:
    """Every message of every operation."""
    carrier, messages = CARRIERS[adapter], [repr(connection), str(connection)]
    work: list[Any] = [
        lambda: carrier.verify(connection),
        lambda: carrier.quote(connection, build_request(pickup_city="3171")),
        lambda: carrier.book(connection, build_request(**service(adapter)), REFERENCE),
        lambda: carrier.find(connection, REFERENCE, None),
        lambda: carrier.cancel(connection, SHIPPED[adapter], "A mistake"),
        lambda: carrier.track(connection, SHIPPED[adapter]),
    ]
    for do in work:
        try:
            messages.append(repr(await do()))
        except (BadCredentials, CarrierAway, NotSent, Unclear) as error:
            messages.append(repr(error))
            messages.extend(traceback.format_exception(error))
    return " ".join(messages)


@pytest.mark.parametrize("adapter", list(CARRIERS))
@pytest.mark.parametrize("status", [200, 400, 401, 422, 500])
async def test_an_echo_of_the_credentials_goes_nowhere(adapter: str, status: int) -> None:
    echo = " ".join(SECRETS) + " Bearer dash-token"
    body = {
        "status": False,
        "success": False,
        "text": echo,
        "message": echo,
        "error": echo,
        "errors": [echo],
        "code": 1,
    }
    async with open_peer() as peer, open_connection(adapter, peer.address, CREDENTIALS[adapter]) as connection:
        peer.replies = [*([TOKEN] if adapter == "dash" else []), Reply(status, body, {"Error-Message": echo})]
        messages = await collect_messages(adapter, connection)
    for secret in [*CREDENTIALS[adapter].values(), "dash-token"]:
        assert secret not in messages or secret == "X-Signature"


def test_words_are_scrubbed_and_not_endless() -> None:
    assert scrub_text({"a": "secret", "b": "secret-longer"}, "x secret-longer y secret z") == "x … y … z"
    assert len(scrub_text({}, "word " * 1000)) <= 300


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("a" * 50, "a" * 50),
        ("Titip di satpam kalau rumah kosong, jangan dilempar ya", "Titip di satpam kalau rumah kosong, jangan…"),
        ("a" * 51, "a" * 49 + "…"),
        ("x" * 49 + " yy", "x" * 49 + "…"),
    ],
)
def test_a_note_is_cut_at_a_word_and_says_so(text: str, short: str) -> None:
    assert shorten(text, 50) == short
    assert build_note(build_request(text)) == short


def test_notes_of_both_ends_reach_the_courier() -> None:
    shipment = build_request("Lantai 2", parcel={"notes": "Pecah  belah"})
    assert build_note(shipment) == "Lantai 2 / Pecah belah"
    assert join_notes([None, " ", "a\nb"]) == "a b"
