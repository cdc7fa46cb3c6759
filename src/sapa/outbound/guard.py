"""Which addresses webhooks may reach: none inside the installation's own network, unless the operator allows it.

An address is checked three times: when it is registered, when its name is resolved, and when a socket is opened. The
last check decides, because it sees the address that is really connected to.
"""

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import quote

from yarl import URL

from sapa.settings import WebhookSettings

if TYPE_CHECKING:
    from aiohttp import AddrInfoType

MAX_CHARACTERS = 2048
FIRST_FREE_PORT = 1024
HTTPS_PORT = 443
_DEFAULT_PORTS = {"http": 80, "https": HTTPS_PORT}

_HOW_TO_ALLOW = (
    "the operator can allow it in SAPA_WEBHOOK_ALLOWED_NETWORKS, or everything with SAPA_WEBHOOK_ALLOW_INSECURE=1"
)

_CLOSED_V4 = [
    ip_network(network)
    for network in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24"
        " 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
        " 168.63.129.16/32"  # looks public, but is the host's agent on a large cloud
    ).split()
]
# IPv6 has many ways to embed an IPv4 address. So only the global unicast range is open, without its exceptions
# (protocol assignments, documentation, 6to4).
_OPEN_V6 = ip_network("2000::/3")
_CLOSED_V6 = [ip_network(network) for network in "2001::/23 2001:db8::/32 2002::/16 3fff::/20".split()]
_NAT64 = ip_network("64:ff9b::/96")

_parse_url = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>\[[^\[\]]*\]|[^\[\]:/?]+)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?].*)?",
    re.ASCII | re.IGNORECASE,
).fullmatch
_is_name = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.ASCII).fullmatch
_looks_numeric = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)", re.ASCII).fullmatch
_UNESCAPED_IN_PATHS = "".join(map(chr, range(0x21, 0x7F)))


class BlockedAddress(OSError):
    """An address that webhooks may not reach. An OSError, like other failures to open a socket."""


class AddressRefused(ValueError):
    """A receiver's address that cannot be used; the message says how to fix it."""


class Guard:
    """Decides which addresses may be connected to."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._allow_all = settings.allow_insecure
        self._allowed = settings.allowed_networks

    def permits(self, text: str) -> bool:
        """Whether this literal address, never a name, may be connected to."""
        if self._allow_all:
            return True
        try:
            address = ip_address(text)
        except ValueError:
            return False
        if isinstance(address, IPv4Address):
            return self._is_listed(address) or _is_public_v4(address)
        return self._permits_v6(address)

    def check(self, text: str) -> None:
        if not self.permits(text):
            raise BlockedAddress(f"{text} is an address that webhooks may not reach; {_HOW_TO_ALLOW}")

    def open_socket(self, address_info: "AddrInfoType") -> socket.socket:
        """A socket for this address only."""
        family, kind, protocol, _, address = address_info
        self.check(str(address[0]))
        return socket.socket(family, kind, protocol)

    def _permits_v6(self, address: IPv6Address) -> bool:
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped:
            return self.permits(str(address.ipv4_mapped))
        if address in _NAT64:
            return self._is_listed(address) and self.permits(str(IPv4Address(int(address) & 0xFFFF_FFFF)))
        return self._is_listed(address) or _is_public_v6(address)

    def _is_listed(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._allowed)


def _is_public_v4(address: IPv4Address) -> bool:
    return not any(address in network for network in _CLOSED_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    return address in _OPEN_V6 and not any(address in network for network in _CLOSED_V6)


def check_url(text: str, settings: WebhookSettings) -> str:
    """The normalised URL; raises AddressRefused. Names are resolved at delivery."""
    found = _parse_url(_check_text(text))
    if not found:
        raise AddressRefused("is not a complete address such as https://shop.example/hooks")
    scheme = found["scheme"].lower()
    if scheme != "https" and not (scheme == "http" and settings.allow_insecure):
        raise AddressRefused(
            f"must start with https://, not {scheme}://; for development, set SAPA_WEBHOOK_ALLOW_INSECURE=1"
        )
    host = _build_host(found["host"], Guard(settings))
    port = _build_port(found["port"], scheme, settings)
    url = f"{scheme}://{host}{port}{_build_path(found['rest'] or '/')}"
    if len(url) > MAX_CHARACTERS:
        raise AddressRefused(f"is longer than {MAX_CHARACTERS} characters")
    return url


def _check_text(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise AddressRefused(f"is longer than {MAX_CHARACTERS} characters")
    if any(character.isspace() or not character.isprintable() for character in text) or "\\" in text:
        raise AddressRefused("contains a space, a backslash or a control character; percent-encode it")
    if "#" in text:
        raise AddressRefused("has a fragment (#…), which is never sent to a server; remove it")
    if "@" in re.split(r"[/?]", text.partition("://")[2], maxsplit=1)[0]:
        raise AddressRefused("contains a user name or password; use a custom header of the endpoint instead")
    return text


def _build_host(text: str, guard: Guard) -> str:
    if text.startswith("["):
        return f"[{_check_v6(text[1:-1], guard)}]"
    try:
        # Parsed as the sender does, so that both see the same host.
        host = (URL.build(scheme="https", host=text).raw_host or "").rstrip(".")
    except ValueError:
        host = ""
    if not _is_name(host):
        raise AddressRefused(f"has an invalid host name: {text}")
    if _looks_numeric(host):
        return _check_v4(host, guard)
    if (host == "localhost" or host.endswith(".localhost")) and not guard.permits("127.0.0.1"):
        raise AddressRefused(f"points to this machine; {_HOW_TO_ALLOW}")
    return host


def _check_v4(text: str, guard: Guard) -> str:
    """Other notations (octal, hexadecimal, one number) are refused: programs read them differently."""
    try:
        IPv4Address(text)
    except ValueError:
        raise AddressRefused(f"has a numeric host that is not a plain IPv4 address: {text}") from None
    return _check_permitted(text, guard)


def _check_v6(text: str, guard: Guard) -> str:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise AddressRefused(f"has a host in brackets that is not an IPv6 address: {text}") from None
    if address.scope_id is not None:
        raise AddressRefused("has an IPv6 address with a zone, which is valid on one machine only; remove the zone")
    return _check_permitted(address.compressed, guard)


def _check_permitted(address: str, guard: Guard) -> str:
    try:
        guard.check(address)
    except BlockedAddress as blocked:
        raise AddressRefused(str(blocked)) from None
    return address


def _build_port(text: str | None, scheme: str, settings: WebhookSettings) -> str:
    port = int(text) if text else _DEFAULT_PORTS[scheme]
    if port == _DEFAULT_PORTS[scheme]:
        return ""
    least = 1 if settings.allow_insecure else FIRST_FREE_PORT
    if not least <= port <= 65535:
        raise AddressRefused(f"has port {port}; use {HTTPS_PORT} or {FIRST_FREE_PORT}–65535")
    return f":{port}"


def _build_path(rest: str) -> str:
    """Unchanged, because a receiver may have signed it. Only characters that a request cannot hold are encoded."""
    return quote(rest if rest.startswith("/") else f"/{rest}", safe=_UNESCAPED_IN_PATHS)
