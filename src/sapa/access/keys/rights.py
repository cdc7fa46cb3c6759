"""Whether a key has at most the rights of another. Nothing here uses the database."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import TypeVar

from sapa.access.keys.types import BeyondOwnRights
from sapa.access.types import ApiKey
from sapa.http.query_string import parse_date_time
from sapa.settings import Network

Kind = TypeVar("Kind", IPv4Network, IPv6Network)

NEVER = "9999-12-31T23:59:59.999Z"


def check_rights(own: ApiKey, other: ApiKey) -> None:
    """Raises BeyondOwnRights, with the first right of the other key that `own` lacks."""
    for kind, rights, needed in (
        ("scope", own.scopes, other.scopes),
        ("product", own.products, other.products),
    ):
        if missing := [right for right in needed if right not in rights]:
            raise BeyondOwnRights(f"Your key lacks the {kind} {missing[0]}.")
    if not is_within(other.allow_list, own.allow_list):
        allowed = ", ".join(own.allow_list)
        raise BeyondOwnRights(f"Your key may be used from {allowed} only. Give a list within that.")
    if other.rate_limit > own.rate_limit:
        raise BeyondOwnRights(f"Your key may make {own.rate_limit} calls a minute. Give at most that.")
    if other.allows_mcp and not own.allows_mcp:
        raise BeyondOwnRights("Your key may not be used with MCP. Set `allowsMcp` to false.")
    if parse_date_time(other.expires_at or NEVER) > parse_date_time(own.expires_at or NEVER):
        raise BeyondOwnRights(f"Your key works until {own.expires_at}. Give an earlier end.")


def is_within(entries: Sequence[str], outer: Sequence[str]) -> bool:
    """Whether the second list allows every address that the first one does; an empty list allows all."""
    if not outer:
        return True
    if not entries:
        return False
    return all(_has_network(ip_network(entry), [ip_network(one) for one in outer]) for entry in entries)


def _has_network(inner: Network, outer: Sequence[Network]) -> bool:
    """Adjacent ranges are merged first: together they may hold one that none of them holds alone."""
    if isinstance(inner, IPv4Network):
        return any(inner.subnet_of(one) for one in collapse_addresses(_select(outer, IPv4Network)))
    return any(inner.subnet_of(one) for one in collapse_addresses(_select(outer, IPv6Network)))


def _select(networks: Sequence[Network], kind: type[Kind]) -> list[Kind]:
    return [network for network in networks if isinstance(network, kind)]
