"""An endpoint's fields: validated, sealed and opened. Nothing here uses the database."""

import re

import msgspec

from sapa.events import CATALOGUE
from sapa.http.errors import Invalid
from sapa.outbound import guard
from sapa.settings import WebhookSettings
from sapa.values.sealing import Vault
from sapa.webhooks.sender import Target
from sapa.webhooks.types import StoredEndpoint, WebhookEndpoint

MAX_HEADERS = 20
LONGEST_HEADER_NAME = 100
LONGEST_HEADER_VALUE = 1000
LONGEST_DESCRIPTION = 500

_is_header_name = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_is_printable = re.compile(r"[!-~]([ -~]*[!-~])?").fullmatch
_is_reserved = re.compile(
    r"host|user-agent|content-.*|x-service-webhook-.*|webhook-.*|connection|keep-alive|proxy-.*|te|trailer|"
    r"transfer-encoding|upgrade|expect|http2-settings",
    re.IGNORECASE,
).fullmatch


def check_url(text: str, settings: WebhookSettings) -> str:
    """The normalised URL of the receiver."""
    try:
        return guard.check_url(text, settings)
    except guard.AddressRefused as refused:
        raise Invalid.field("url", str(refused)) from None


def check_events(kinds: list[str], field: str = "events") -> list[str]:
    """Known kinds without duplicates. An empty list means all kinds."""
    for kind in kinds:
        if kind not in CATALOGUE:
            raise Invalid.field(field, f"{kind!r} is unknown; use one of {', '.join(CATALOGUE)}")
    return list(dict.fromkeys(kinds))


def check_description(text: str | None) -> str | None:
    if text is not None and (len(text) > LONGEST_DESCRIPTION or not text.isprintable()):
        raise Invalid.field("description", f"must have at most {LONGEST_DESCRIPTION} printable characters")
    return text or None


def check_headers(headers: dict[str, str]) -> dict[str, str]:
    """Custom headers, which never replace those that every delivery carries."""
    if len(headers) > MAX_HEADERS:
        raise Invalid.field("headers", f"must have at most {MAX_HEADERS} headers")
    if len({name.lower() for name in headers}) < len(headers):
        raise Invalid.field("headers", "each name may occur only once, ignoring case")
    for name, value in headers.items():
        _check_header(name, value)
    return headers


def _check_header(name: str, value: str) -> None:
    if not _is_header_name(name) or len(name) > LONGEST_HEADER_NAME:
        raise Invalid.field("headers", f"{name[:LONGEST_HEADER_NAME]!r} is not a valid header name")
    if _is_reserved(name):
        raise Invalid.field("headers", f"{name} is set by every delivery; choose another name")
    if len(value) > LONGEST_HEADER_VALUE or not _is_printable(value):
        advice = f"must be 1 to {LONGEST_HEADER_VALUE} printable ASCII characters, without spaces at the start or end"
        raise Invalid.field("headers", f"the value of {name} {advice}")


def seal_secret(vault: Vault, company_id: int, id: str, secret: str) -> bytes:
    return vault.seal(secret.encode(), company_id, id)


def seal_headers(vault: Vault, company_id: int, id: str, headers: dict[str, str]) -> bytes | None:
    return vault.seal(msgspec.json.encode(headers), company_id, f"{id}/headers") if headers else None


def open_headers(vault: Vault, stored: StoredEndpoint) -> dict[str, str]:
    if stored.headers is None:
        return {}
    text = vault.open(stored.headers, stored.company_id, f"{stored.id}/headers")
    return msgspec.json.decode(text, type=dict[str, str])


def open_secrets(vault: Vault, stored: StoredEndpoint) -> list[str]:
    """The secrets that sign now: the current one, and the previous one during the overlap."""
    sealed = [stored.secret, *([stored.previous_secret] if stored.previous_secret else [])]
    return [vault.open(secret, stored.company_id, stored.id).decode() for secret in sealed]


def build_target(vault: Vault, stored: StoredEndpoint) -> Target:
    return Target(stored.url, open_headers(vault, stored), open_secrets(vault, stored))


def build_endpoint(vault: Vault, stored: StoredEndpoint) -> WebhookEndpoint:
    """The endpoint without its secrets."""
    return WebhookEndpoint(
        id=stored.id,
        company_id=stored.company_id,
        url=stored.url,
        events=stored.kinds,
        description=stored.description,
        headers=list(open_headers(vault, stored)),
        status=stored.status,
        reason=stored.reason,
        failures=stored.failures,
        catching_up=stored.catch_up,
        auto_resume=stored.auto_resume,
        suspended_at=stored.suspended_at,
        next_probe_at=stored.next_probe_at,
        secret_hint=open_secrets(vault, stored)[0][-4:],
        previous_secret_until=stored.previous_until,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
    )
