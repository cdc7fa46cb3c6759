"""Which addresses may use a key, and which address a call is taken to come from."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.access.types import KeyIn
from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.http.allow_list import AllowList, BadAllowList, client_address, parse_allow_list
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.http.probe import open_app
from tests.http.wire import send


async def code_from(installation: Installation, peer: str, key: str, forwarded: str | None = None, **set: str) -> str:
    """What a call from an address gets: `ok` or the error's code."""
    headers = [("x-api-key", key)] + [("x-forwarded-for", hop) for hop in [forwarded] if hop is not None]
    async with open_app(installation, ROUTES, peer, **set) as client:
        response = await client.get("/customers", headers=headers)
    return "ok" if response.status_code == 200 else str(response.json()["error"]["code"])


@pytest.mark.parametrize(
    ("allowed", "peer", "expected"),
    [
        (["203.0.113.7"], "203.0.113.7", "ok"),
        (["203.0.113.7"], "203.0.113.8", "IP_NOT_ALLOWED"),
        (["203.0.113.0/24"], "203.0.113.255", "ok"),
        (["203.0.113.0/24"], "203.0.114.0", "IP_NOT_ALLOWED"),
        (["203.0.113.0/24"], "::ffff:203.0.113.9", "ok"),
        (["203.0.113.0/24"], "::ffff:cb00:7109", "ok"),
        (["203.0.113.0/24"], "::ffff:203.0.114.9", "IP_NOT_ALLOWED"),
        (["2001:db8::/33"], "2001:db8:7fff::1", "ok"),
        (["2001:db8::/33"], "2001:db8:8000::1", "IP_NOT_ALLOWED"),
        (["2001:db8::1"], "2001:0DB8:0:0:0:0:0:1", "ok"),
        (["fe80::1"], "fe80::1%eth0", "ok"),
        (["198.51.100.1", "2001:db8::/64"], "2001:db8::5", "ok"),
        (["198.51.100.1", "2001:db8::/64"], "198.51.100.1", "ok"),
        (["203.0.113.7"], "2001:db8::1", "IP_NOT_ALLOWED"),
        (["2001:db8::/64"], "203.0.113.7", "IP_NOT_ALLOWED"),
        (["203.0.113.7"], "", "IP_NOT_ALLOWED"),
        (["203.0.113.7"], "unix", "IP_NOT_ALLOWED"),
        ([], "198.51.100.99", "ok"),
    ],
)
async def test_a_key_works_from_its_addresses_only(
    installation: Installation, database: Database, company: Environments, allowed: list[str], peer: str, expected: str
) -> None:
    key = await make_key(database, company.live, allow_list=allowed)
    assert await code_from(installation, peer, key.raw) == expected


async def test_the_refusal_names_the_address_it_saw(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live, allow_list=["203.0.113.0/24"])
    reply = send(installation, "GET", "/customers", [("x-api-key", key.raw)])
    assert reply.status == 403
    assert reply.json()["error"] == {
        "code": "IP_NOT_ALLOWED",
        "message": "The address 127.0.0.1 is not in the key's allow-list.",
    }


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip", "client-ip", "true-client-ip"])
async def test_a_forged_forwarding_header_changes_nothing_without_trusted_proxies(
    installation: Installation, database: Database, company: Environments, header: str
) -> None:
    inside = await make_key(database, company.live, allow_list=["127.0.0.1/8"])
    outside = await make_key(database, company.live, allow_list=["203.0.113.7"])
    value = "for=203.0.113.7" if header == "forwarded" else "203.0.113.7"
    assert send(installation, "GET", "/customers", [("x-api-key", inside.raw), (header, value)]).status == 200
    refused = send(installation, "GET", "/customers", [("x-api-key", outside.raw), (header, value)])
    assert refused.code == "IP_NOT_ALLOWED"


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("10.0.0.1", "203.0.113.7", "ok"),
        ("10.0.0.1", "203.0.113.7, 10.0.0.2", "ok"),
        ("::ffff:10.0.0.1", "203.0.113.7", "ok"),
        ("10.0.0.1", "::ffff:203.0.113.7", "ok"),
        ("10.0.0.1", "203.0.113.7, 198.51.100.1", "IP_NOT_ALLOWED"),
        ("10.0.0.1", "198.51.100.1", "IP_NOT_ALLOWED"),
        ("10.0.0.1", None, "IP_NOT_ALLOWED"),
        ("198.51.100.1", "203.0.113.7", "IP_NOT_ALLOWED"),
        ("10.0.0.1", "203.0.113.7, rubbish", "IP_NOT_ALLOWED"),
        ("10.0.0.1", "203.0.113.7:51234", "ok"),
        ("10.0.0.1", "203.0.113.7:51234, [2001:db8:ffff::2]:443, 10.0.0.2:8080", "ok"),
        ("10.0.0.1", "203.0.113.7, 198.51.100.1:443", "IP_NOT_ALLOWED"),
        ("10.0.0.1", "", "IP_NOT_ALLOWED"),
    ],
)
async def test_behind_trusted_proxies_the_right_most_untrusted_hop_counts(
    installation: Installation,
    database: Database,
    company: Environments,
    peer: str,
    forwarded: str | None,
    expected: str,
) -> None:
    key = await make_key(database, company.live, allow_list=["203.0.113.7"])
    settings = {"SAPA_TRUSTED_PROXIES": "10.0.0.0/8, 2001:db8:ffff::/48"}
    assert await code_from(installation, peer, key.raw, forwarded, **settings) == expected


async def test_several_forwarding_headers_are_one_list(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live, allow_list=["203.0.113.7"])
    async with open_app(installation, ROUTES, "10.0.0.1", SAPA_TRUSTED_PROXIES="10.0.0.0/8") as client:
        for hops, status in [(("203.0.113.7", "10.0.0.9"), 200), (("203.0.113.7", "198.51.100.1"), 403)]:
            headers = httpx.Headers([("x-api-key", key.raw), *(("x-forwarded-for", hop) for hop in hops)])
            assert (await client.get("/customers", headers=headers)).status_code == status


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("198.51.100.1", None, "198.51.100.1"),
        ("198.51.100.1", "1.1.1.1", "198.51.100.1"),
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "1.1.1.1", "1.1.1.1"),
        ("10.0.0.1", " 1.1.1.1 ,\t10.0.0.2 ", "1.1.1.1"),
        ("10.0.0.1", "9.9.9.9, 1.1.1.1, 10.0.0.3, 10.0.0.2", "1.1.1.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.1"),
        ("10.0.0.1", "1.1.1.1,", "1.1.1.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "::ffff:1.1.1.1", "1.1.1.1"),
        ("10.0.0.1", "2001:DB8:0::1", "2001:db8::1"),
        ("::ffff:10.0.0.1", "1.1.1.1", "1.1.1.1"),
        ("::ffff:198.51.100.1", "1.1.1.1", "198.51.100.1"),
        ("10.0.0.1", "1.1.1.1, ::ffff:10.0.0.2", "1.1.1.1"),
        ("10.0.0.1", "1.1.1.1:51234", "1.1.1.1"),
        ("10.0.0.1", "[2001:DB8::1]", "2001:db8::1"),
        ("10.0.0.1", "[2001:db8::1]:51234", "2001:db8::1"),
        ("10.0.0.1", "[::ffff:1.1.1.1]:51234, 10.0.0.2:80", "1.1.1.1"),
        ("10.0.0.1", "2001:db8::1:443", "2001:db8::1:443"),
        ("10.0.0.1", "1.1.1.1:http", "1.1.1.1:http"),
        ("10.0.0.1", "1.1.1.1:8080:9", "1.1.1.1:8080:9"),
        ("10.0.0.1", "[10.0.0.2]evil", "[10.0.0.2]evil"),
        ("10.0.0.1", ":80", "10.0.0.1"),
        ("fe80::1%eth0", None, "fe80::1"),
        ("", "1.1.1.1", ""),
    ],
)
def test_client_address(peer: str, forwarded: str | None, expected: str) -> None:
    assert client_address(peer, forwarded, AllowList(["10.0.0.0/8"])) == expected


def test_nobody_is_a_trusted_proxy_by_default() -> None:
    assert client_address("10.0.0.1", "1.1.1.1", AllowList([])) == "10.0.0.1"


@pytest.mark.parametrize(
    ("entry", "normal"),
    [
        ("203.0.113.7", "203.0.113.7/32"),
        (" 203.0.113.0/24 ", "203.0.113.0/24"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("203.0.113.7/24", "203.0.113.0/24"),
        ("2001:DB8::/32", "2001:db8::/32"),
        ("2001:db8::7/64", "2001:db8::/64"),
        ("2001:db8:0:0::1", "2001:db8::1/128"),
    ],
)
def test_entries_are_normalised(entry: str, normal: str) -> None:
    assert parse_allow_list([entry, entry]) == [normal]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("10.0.0.0/7", "too broad"),
        ("0.0.0.0/0", "too broad"),
        ("2001:db8::/31", "too broad"),
        ("::/0", "too broad"),
        ("203.0.113.0/33", "not an IP address"),
        ("2001:db8::/129", "not an IP address"),
        ("203.0.113", "not an IP address"),
        ("203.0.113.256", "not an IP address"),
        ("203.0.113.007", "not an IP address"),
        ("example.com", "not an IP address"),
        ("203.0.113.7:443", "not an IP address"),
        ("::ffff:203.0.113.7", "plain IPv4"),
        ("::ffff:203.0.113.0/120", "plain IPv4"),
        ("", "not an IP address"),
        ("*", "not an IP address"),
    ],
)
def test_entries_that_cannot_be_used_are_refused_by_name(entry: str, says: str) -> None:
    with pytest.raises(BadAllowList, match=says) as refusal:
        parse_allow_list(["198.51.100.1", entry])
    assert repr(entry) in str(refusal.value)


def test_a_list_holds_twenty_entries() -> None:
    entries = [f"203.0.113.{number}" for number in range(21)]
    assert len(parse_allow_list(entries[:20])) == 20
    with pytest.raises(BadAllowList, match="at most 20"):
        parse_allow_list(entries)


def test_a_new_key_has_no_allow_list() -> None:
    assert KeyIn(name="n", scopes=[]).allow_list == []
    assert AllowList([]).allows("198.51.100.99")
    assert not AllowList([]).contains("198.51.100.99")


v4 = st.ip_addresses(v=4).map(str)
v6 = st.ip_addresses(v=6).map(str)
networks = st.one_of(
    st.builds(lambda ip, bits: ip_network(f"{ip}/{bits}", strict=False), v4, st.integers(8, 32)),
    st.builds(lambda ip, bits: ip_network(f"{ip}/{bits}", strict=False), v6, st.integers(32, 128)),
).filter(lambda net: not getattr(net.network_address, "ipv4_mapped", None))


@given(st.lists(networks, min_size=1, max_size=20), st.data())
def test_an_allow_list_agrees_with_the_standard_library(nets: list[object], data: st.DataObject) -> None:
    allowed = AllowList(parse_allow_list([str(net) for net in nets]))
    inside = ip_network(data.draw(st.sampled_from([str(net) for net in nets])))
    near = inside.network_address + data.draw(st.integers(0, inside.num_addresses - 1))
    for text in (data.draw(v4), data.draw(v6), str(near)):
        address: IPv4Address | IPv6Address = ip_address(text)
        plain = getattr(address, "ipv4_mapped", None) or address
        expected = any(plain in ip_network(str(net)) for net in nets)
        assert allowed.allows(text) == allowed.allows(text) == expected


@given(st.ip_addresses(v=4), st.integers(8, 32))
def test_a_mapped_address_is_its_plain_one(address: IPv4Address, bits: int) -> None:
    allowed = AllowList([str(ip_network(f"{address}/{bits}", strict=False))])
    assert allowed.allows(f"::ffff:{address}")
    assert allowed.allows(str(IPv6Address(0xFFFF_0000_0000 + int(address))))


@given(st.text(max_size=60))
def test_whatever_a_peer_calls_itself_is_at_most_refused(text: str) -> None:
    assert AllowList(["203.0.113.7"]).allows(text) == (text == "203.0.113.7")
