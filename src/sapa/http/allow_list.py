"""Which addresses may use a key, and which address a call came from."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from starlette.requests import Request

from sapa.settings import Network

MAX_ENTRIES = 20
BROADEST = {4: 8, 6: 32}
MAX_CACHED = 1000

_split_hop = re.compile(r"\[(?P<bracketed>[^\]]*)\](?::\d{1,5})?|(?P<plain>[^:\[\]]*):\d{1,5}", re.ASCII).fullmatch


class BadAllowList(ValueError):
    """An allow-list entry that cannot be used; the text says which and why."""


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address, with IPv4 mapped into IPv6 as plain IPv4; None when the text is not an address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or (IPv6Address(int(address)) if address.scope_id else address)
    return address


def parse_allow_list(entries: Sequence[str]) -> list[str]:
    """Addresses and CIDR ranges, normalised."""
    if len(entries) > MAX_ENTRIES:
        raise BadAllowList(f"An allow-list has at most {MAX_ENTRIES} entries. Merge adjacent ranges.")
    return list(dict.fromkeys(str(_parse_entry(entry)) for entry in entries))


def _parse_entry(entry: str) -> Network:
    if "%" in entry:
        raise BadAllowList(f"{entry!r} has a zone (%…). Write the address without it.")
    try:
        network = ip_network(entry.strip(), strict=False)
    except ValueError as error:
        raise BadAllowList(f"{entry!r} is not an IP address or CIDR range: {error}.") from None
    if isinstance(network.network_address, IPv6Address) and network.network_address.ipv4_mapped:
        raise BadAllowList(f"{entry!r} is an IPv4 address in IPv6 form. Write it as plain IPv4.")
    if network.prefixlen < BROADEST[network.version]:
        broadest = BROADEST[network.version]
        raise BadAllowList(f"{entry!r} is too broad. Use /{broadest} or longer for IPv{network.version}.")
    return network


class AllowList:
    """The ranges as integers, and a cache of the addresses seen; an empty list allows all."""

    __slots__ = ("_is_contained", "_ranges")

    def __init__(self, entries: Iterable[str | Network]) -> None:
        networks = [ip_network(entry) for entry in entries]
        self._ranges = [(net.version, int(net.network_address), int(net.netmask)) for net in networks]
        self._is_contained: dict[str, bool] = {}

    def allows(self, address: str) -> bool:
        return not self._ranges or self.contains(address)

    def contains(self, address: str) -> bool:
        is_contained = self._is_contained.get(address)
        if is_contained is None:
            if len(self._is_contained) >= MAX_CACHED:
                self._is_contained.clear()
            is_contained = self._is_contained[address] = self._search(address)
        return is_contained

    def _search(self, text: str) -> bool:
        address = parse_address(text)
        if address is None:
            return False
        number = int(address)
        return any(version == address.version and number & mask == network for version, network, mask in self._ranges)


def client_address(peer: str, forwarded: str | None, trusted: AllowList) -> str:
    """The peer, unless it is a trusted proxy: then the right-most hop that is not one."""
    if forwarded is None or not trusted.contains(peer):
        return _normalise(peer)
    for hop in reversed(forwarded.split(",")):
        address = _parse_hop(hop)
        if address and not trusted.contains(address):
            return _normalise(address)
    return _normalise(peer)


def read_client_address(request: Request, trusted: AllowList) -> str:
    """The client of a page's request. A proxy may add its hop as a header of its own, behind the caller's."""
    peer = request.client.host if request.client else ""
    return client_address(peer, ",".join(request.headers.getlist("x-forwarded-for")), trusted)


def _parse_hop(hop: str) -> str:
    """The hop's address without brackets and port, which some proxies add: `[2001:db8::1]:443`, `203.0.113.7:8080`."""
    text = hop.strip()
    parts = _split_hop(text)
    return text if parts is None else parts["bracketed"] or parts["plain"] or ""


@lru_cache(maxsize=MAX_CACHED)
def _normalise(text: str) -> str:
    address = parse_address(text)
    return text if address is None else str(address)


@lru_cache(maxsize=MAX_CACHED)
def get_network(text: str) -> str:
    """The network that one client may control: an IPv4 address, or the /64 of an IPv6 address."""
    address = parse_address(text)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return text if address is None else str(address)
