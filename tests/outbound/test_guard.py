"""Where webhooks may go: every special range in every spelling is closed, and the rest is open."""

import asyncio
import re
import socket
import threading
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.outbound.guard import AddressRefused, BlockedAddress, Guard, check_url
from sapa.outbound.resolver import (
    MAX_LOOK_UPS,
    GuardedResolver,
    NoRoom,
    SlowName,
)
from sapa.settings import WebhookSettings
from tests.webhooks.zoo import CLOSED, INSECURE, LOCAL, OK, answering, send, sending, serve

# From the registries of special-purpose addresses, and what clouds use for their own.
SPECIAL_V4 = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24"
        " 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
        " 168.63.129.16/32 169.254.169.254/32 255.255.255.255/32"
    ).split()
]
SPECIAL_V6 = [
    IPv6Network(network)
    for network in (
        "::/128 ::1/128 ::/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:2::/48 2001:10::/28"
        " 2001:20::/28 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8 4000::/2"
        " fd00:ec2::254/128"
    ).split()
]
PUBLIC = (
    "1.1.1.1 8.8.8.8 93.184.216.34 172.15.0.1 172.32.0.1 11.0.0.1 100.63.0.1 100.128.0.1 198.17.0.1 223.0.0.1".split()
)
PUBLIC += "2606:4700:4700::1111 2a00:1450:4001:801::200e 2620:fe::fe 2400:cb00:2048::1 2001:4860:4860::8888".split()


def inside(network: IPv4Network | IPv6Network) -> st.SearchStrategy[int]:
    return st.integers(int(network.network_address), int(network.broadcast_address))


special_v4 = st.sampled_from(SPECIAL_V4).flatmap(inside).map(IPv4Address)
special_v6 = st.sampled_from(SPECIAL_V6).flatmap(inside).map(IPv6Address)


def is_special(address: IPv4Address) -> bool:
    return any(address in network for network in SPECIAL_V4)


public_v4 = st.integers(0, 2**32 - 1).map(IPv4Address).filter(lambda address: not is_special(address))


def spell_v4(address: IPv4Address) -> list[str]:
    """One address in the many ways that one program or another understands."""
    parts, number = list(address.packed), int(address)
    return [
        str(address),
        f"{address}.",
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(hex(part) for part in parts),
        ".".join(f"0{part:o}" for part in parts),
        ".".join(f"{part:03d}" for part in parts),
        f"{parts[0]}.{number & 0xFFFFFF}",
        f"{parts[0]}.{parts[1]}.{number & 0xFFFF}",
        "".join(chr(0xFF10 + int(digit)) if digit.isdigit() else "。" for digit in str(address)),
    ]


def embed(address: IPv4Address) -> list[str]:
    """An IPv4 address inside an IPv6 one."""
    number = int(address)
    return [
        f"::ffff:{address}",
        str(IPv6Address(0xFFFF << 32 | number)),
        str(IPv6Address(0xFFFF << 48 | number)),
        str(IPv6Address(number)),
        str(IPv6Address(int(IPv6Address("64:ff9b::")) | number)),
        str(IPv6Address(int(IPv6Address("64:ff9b:1::")) | number)),
        str(IPv6Address(0x2002 << 112 | number << 80)),
        str(IPv6Address(0x2001 << 112 | number ^ 0xFFFF_FFFF)),
    ]


def is_refused(host: str, settings: WebhookSettings = CLOSED) -> bool:
    try:
        check_url(f"https://{host}/", settings)
    except AddressRefused:
        return True
    return False


@given(special_v4)
def test_a_special_ipv4_address_is_closed_in_every_spelling(address: IPv4Address) -> None:
    assert not Guard(CLOSED).permits(str(address))
    assert [text for text in spell_v4(address) if not is_refused(text)] == []


@given(special_v4)
def test_a_special_ipv4_address_is_closed_inside_ipv6(address: IPv4Address) -> None:
    assert [text for text in embed(address) if Guard(CLOSED).permits(text)] == []
    assert [text for text in embed(address) if not is_refused(f"[{text}]")] == []


@given(special_v6)
def test_a_special_ipv6_address_is_closed(address: IPv6Address) -> None:
    if address.ipv4_mapped is None:
        assert not Guard(CLOSED).permits(str(address))
        assert is_refused(f"[{address}]")
        assert is_refused(f"[{address.exploded}]")


@given(public_v4)
def test_a_public_ipv4_address_is_open_in_its_plain_spelling(address: IPv4Address) -> None:
    assert Guard(CLOSED).permits(str(address))
    assert check_url(f"https://{address}/", CLOSED) == f"https://{address}/"
    assert Guard(CLOSED).permits(f"::ffff:{address}")


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_open(address: str) -> None:
    assert Guard(CLOSED).permits(address)
    assert not is_refused(f"[{address}]" if ":" in address else address)


@pytest.mark.parametrize("text", ["", "localhost", "1.1.1", "fe80::1%eth0", "2606:4700::1111%eth0", "1.1.1.1 ", "²"])
def test_what_is_no_plain_address_is_closed(text: str) -> None:
    assert not Guard(CLOSED).permits(text)


@given(special_v4)
def test_an_allowed_network_opens_itself_and_nothing_else(address: IPv4Address) -> None:
    guard = Guard(WebhookSettings(allow_insecure=False, allowed_networks=(ip_network(f"{address}/32"),)))
    assert guard.permits(str(address))
    assert guard.permits(f"::ffff:{address}")
    neighbour = IPv4Address(int(address) ^ 1)
    assert guard.permits(str(neighbour)) == (not is_special(neighbour))


def test_nat64_needs_both_the_operators_word_and_a_public_address() -> None:
    guard = Guard(WebhookSettings(allow_insecure=False, allowed_networks=(ip_network("64:ff9b::/96"),)))
    assert guard.permits("64:ff9b::808:808")
    assert not guard.permits("64:ff9b::7f00:1")
    assert not guard.permits("64:ff9b::a9fe:a9fe")


def test_everything_is_open_where_the_operator_allows_insecure() -> None:
    assert check_url("http://localhost:80/hook", INSECURE) == "http://localhost/hook"
    assert check_url("http://10.0.0.1:22/", INSECURE) == "http://10.0.0.1:22/"
    assert Guard(INSECURE).permits("169.254.169.254")


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("https://shop.example", "https://shop.example/"),
        ("HTTPS://Shop.EXAMPLE:443/Hook", "https://shop.example/Hook"),
        ("https://shop.example.:8443/hook", "https://shop.example:8443/hook"),
        ("https://shop.example?x=1", "https://shop.example/?x=1"),
        ("https://shop.example/a?sig=%2Fx%2b&y=a+b@c:d/e", "https://shop.example/a?sig=%2Fx%2b&y=a+b@c:d/e"),
        ("https://shop.example/ü?é", "https://shop.example/%C3%BC?%C3%A9"),
        ("https://München.example/", "https://xn--mnchen-3ya.example/"),
        ("https://トコ.example/", "https://xn--tckyb.example/"),
        ("https://[2606:4700:4700:0:0:0:0:1111]:8443/", "https://[2606:4700:4700::1111]:8443/"),
        ("https://my_shop.example/../x", "https://my_shop.example/../x"),
        ("https://xn--mnchen-3ya.example/", "https://xn--mnchen-3ya.example/"),
    ],
)
def test_an_address_is_normalised(given_text: str, kept: str) -> None:
    assert check_url(given_text, CLOSED) == kept
    assert check_url(kept, CLOSED) == kept


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "complete address"),
        ("shop.example/hook", "complete address"),
        ("https:/shop.example", "complete address"),
        ("https://", "complete address"),
        ("https:///hook", "complete address"),
        ("https://[::1", "complete address"),
        ("https://a[::1]/", "complete address"),
        ("https://shop.example:x/", "complete address"),
        ("https://shop.example:/", "complete address"),
        ("http://shop.example/", "SAPA_WEBHOOK_ALLOW_INSECURE"),
        ("ftp://shop.example/", "https://"),
        ("file:///etc/passwd", "complete address"),
        ("https://user:pass@shop.example/", "user name"),
        ("https://user@shop.example/", "user name"),
        ("https://@shop.example/", "user name"),
        ("https://shop.example/#x", "fragment"),
        ("https://shop.example#@1.1.1.1/", "fragment"),
        ("https://shop.example\\@10.0.0.1/", "backslash"),
        ("https://shop.example/a b", "space"),
        ("https://shop.example/\nx", "space"),
        ("https://shop.example/\0", "control"),
        (" https://shop.example/", "space"),
        ("https://shop\u00ad.exam\u200bple/", "control"),
        ("https://shop..example/", "invalid host name"),
        ("https://.example/", "invalid host name"),
        ("https://ex%41mple.com/", "invalid host name"),
        ("https://127.0.0.1%2f.example/", "invalid host name"),
        (f"https://{'a' * 64}.example/", "invalid host name"),
        ("https://shop.example:22/", "port 22"),
        ("https://shop.example:80/", "port 80"),
        ("https://shop.example:0/", "port 0"),
        ("https://shop.example:65536/", "port 65536"),
        ("https://localhost/", "SAPA_WEBHOOK_ALLOWED_NETWORKS"),
        ("https://a.localhost./", "SAPA_WEBHOOK_ALLOWED_NETWORKS"),
        ("https://10.0.0.1/", "SAPA_WEBHOOK_ALLOWED_NETWORKS"),
        ("https://[::1]/", "SAPA_WEBHOOK_ALLOWED_NETWORKS"),
        ("https://[fe80::1%25eth0]/", "zone"),
        ("https://[fe80::1%eth0]/", "zone"),
        ("https://[1.1.1.1]/", "not an IPv6"),
        ("https://[v1.a]/", "not an IPv6"),
        ("https://2130706433/", "not a plain IPv4"),
        ("https://0x7f.1/", "not a plain IPv4"),
        ("https://1.1.1.1.1/", "not a plain IPv4"),
        (f"https://shop.example/{'x' * 2048}", "longer than 2048"),
        (f"https://shop.example/{'ü' * 1000}", "longer than 2048"),
    ],
)
def test_an_address_that_cannot_be_used_says_why(text: str, said: str) -> None:
    with pytest.raises(AddressRefused, match=re.escape(said)):
        check_url(text, CLOSED)


@given(
    st.text() | st.text().map(lambda text: f"https://{text}") | st.from_regex(r"https?://[\[\]@:.%0-9a-fx/\\#]{0,30}")
)
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        url = check_url(text, CLOSED)
    except AddressRefused:
        return
    assert url.startswith("https://")
    assert url.isascii()
    assert check_url(url, CLOSED) == url


async def test_an_ip_literal_is_checked_when_it_is_connected_to() -> None:
    async with serve(answering(OK)) as receiver, sending(CLOSED) as sender:
        outcome = await send(sender, receiver.url(scheme="https"))
    assert outcome.error == "blocked_address"
    assert outcome.message is not None
    assert outcome.message.startswith("127.0.0.1 is an address that webhooks may not reach")
    assert "SAPA_WEBHOOK_ALLOWED_NETWORKS" in outcome.message
    assert not outcome.is_ours
    assert receiver.connections == 0


@pytest.mark.parametrize("addresses", [["127.0.0.2"], ["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"], ["::1"]])
async def test_one_closed_address_closes_a_name(addresses: list[str]) -> None:
    async with serve(answering(OK), host="127.0.0.2") as receiver, sending(LOCAL, shop_example=addresses) as sender:
        outcome = await send(sender, receiver.url("shop.example", "https"))
    assert outcome.error == "blocked_address"
    assert receiver.connections == 0


async def test_a_name_that_comes_to_lead_elsewhere_is_checked_again() -> None:
    responses = iter([["1.1.1.1"], ["169.254.169.254"], ["1.1.1.1", "10.0.0.1"]])
    names = GuardedResolver(Guard(CLOSED), lambda host: next(responses), cache_seconds=-1)
    assert [place["host"] for place in await names.resolve("shop.example", 443)] == ["1.1.1.1"]
    for _ in range(2):
        with pytest.raises(BlockedAddress):
            await names.resolve("shop.example", 443)
    await names.close()


def test_the_socket_has_the_final_word() -> None:
    """Whatever a resolver said before: what is connected to is looked at."""
    for family, address in ((socket.AF_INET, "169.254.169.254"), (socket.AF_INET6, "::ffff:127.0.0.1")):
        with pytest.raises(BlockedAddress):
            Guard(CLOSED).open_socket((family, socket.SOCK_STREAM, 0, "", (address, 443)))
    Guard(CLOSED).open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("1.1.1.1", 443))).close()


async def test_concurrent_look_ups_of_a_name_are_one() -> None:
    request: list[str] = []

    def look_up(host: str) -> list[str]:
        request.append(host)
        return ["1.1.1.1"]

    names = GuardedResolver(Guard(CLOSED), look_up)
    for _ in range(3):
        await names.resolve("shop.example", 443)
    assert request == ["shop.example"]
    await names.close()


async def test_a_failure_is_remembered_too() -> None:
    request: list[str] = []

    def look_up(host: str) -> list[str]:
        request.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    names = GuardedResolver(Guard(CLOSED), look_up)
    for _ in range(3):
        with pytest.raises(socket.gaierror):
            await names.resolve("shop.example", 443)
    assert request == ["shop.example"]
    await names.close()


async def test_slow_names_do_not_block_other_look_ups() -> None:
    free = threading.Event()
    request: list[str] = []

    def look_up(host: str) -> list[str]:
        request.append(host)
        if host.startswith("slow"):
            free.wait(30)
        return ["1.1.1.1"]

    names = GuardedResolver(Guard(CLOSED), look_up, budget=0.3)
    slow = [f"slow{place}.example" for place in range(MAX_LOOK_UPS + 10)]
    try:
        for attempt in range(3):
            failures = await asyncio.gather(*(names.resolve(name, 443) for name in slow), return_exceptions=True)
            assert {type(failure) for failure in failures[:MAX_LOOK_UPS]} == {SlowName}
            assert {type(failure) for failure in failures} <= {SlowName, NoRoom}
            assert await names.resolve(f"quick{attempt}.example", 443)
        assert len(request) == len(set(request))
    finally:
        free.set()
        await names.close()


async def test_a_look_up_that_never_began_does_not_make_the_name_slow() -> None:
    free = threading.Event()
    names = GuardedResolver(Guard(CLOSED), lambda host: ["1.1.1.1"] if free.wait(30) else [], budget=0.3)
    waiting = [f"slow{place}.example" for place in range(MAX_LOOK_UPS)] + ["late.example"]
    try:
        failures = await asyncio.gather(*(names.resolve(name, 443) for name in waiting), return_exceptions=True)
        assert isinstance(failures[0], SlowName)
        assert isinstance(failures[-1], NoRoom)
    finally:
        free.set()
        await names.close()
