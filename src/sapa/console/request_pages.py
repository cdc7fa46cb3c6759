"""Developer settings: logged message requests, without their keys."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from starlette.responses import Response

from sapa.console.fields import parse_instant
from sapa.console.json_text import build_curl
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console
from sapa.http.endpoints import Base
from sapa.http.errors import Invalid, NotFound
from sapa.http.keys import PREFIXES
from sapa.messaging.history.actions import ENDPOINT_TYPES

PAGE = 25
MAX_AT_ONCE = "100"
MAX_SHOWN = 15_000
"""Characters of a request or a response, so that pages stay small; the API has the rest."""
SECRET_HEADERS = frozenset({"xapikey", "authorization", "proxyauthorization", "cookie"})
MASK = "••••"
WHOLE_KEY = 40
"""Keys are longer than this; four characters of a shorter text might be most of it."""

_NO_LETTER = re.compile(r"[^a-z]")
_LONG_NUMBER = re.compile(r"[0-9]{4,}")
_RAW_KEY = re.compile(rf"({'|'.join(PREFIXES.values())})[A-Za-z0-9_-]+", re.IGNORECASE)


@console.get("/{environment}/requests", roles=DEVELOPERS)
async def list_requests(page: PageRequest) -> Response:
    params = page.request.query_params
    query = {
        name: params.get(name, "").strip() for name in ("responseId", "templateId", "startDate", "endDate", "page")
    }
    wanted = query | {
        "startDate": parse_instant(page, query["startDate"]),
        "endDate": parse_instant(page, query["endDate"], is_end=True),
        "limit": str(PAGE),
    }
    try:
        found = await page.call("GET", "/messages/requests", wanted, base=Base.MESSAGING)
    except Invalid as error:
        page.error = error
        found = {"data": [], "meta": {"page": 1, "total": 0, "hasNextPage": False}}
    items = [record | {"to": show_recipient(record["request"]["body"])} for record in found["data"]]
    return page.show("requests.html", items=items, meta=found["meta"], query=query, is_filtered=any(query.values()))


@console.get("/{environment}/requests/{id}", roles=DEVELOPERS)
async def show_request(page: PageRequest) -> Response:
    """Records are partitioned by time, so the address names it."""
    id, at = page.request.path_params["id"], page.request.query_params.get("at", "")
    if not at:
        raise NotFound
    span = {"startDate": at, "endDate": at, "limit": MAX_AT_ONCE}
    found = (await page.call("GET", "/messages/requests", span, base=Base.MESSAGING))["data"]
    record = next((record for record in found if record["id"] == id), None)
    if record is None:
        raise NotFound
    masked = mask(await _mask_codes(page, record))
    return page.show(
        "request.html",
        record=masked,
        pricing=await _find_pricing(page, record["messageId2"]),
        to=show_recipient(masked["request"]["body"]),
        request_text=build_text(masked["request"]),
        response_text=build_text(masked["response"]),
        curl=_build_curl(page, masked),
        most=MAX_SHOWN,
    )


def _build_curl(page: PageRequest, record: dict[str, Any]) -> str:
    """The call again, for a shell that has the key; empty if it is too long to be shown."""
    body = build_text(record["request"]["body"])
    if len(body) > MAX_SHOWN:
        return ""
    path = next(path for path, type in ENDPOINT_TYPES.items() if type == record["endpointType"])
    url = f"{page.context.settings.server.address}{record['request']['baseUrl']}{path}"
    return build_curl("POST", url, {"content-type": "application/json"}, body, with_key=True)


async def _find_pricing(page: PageRequest, message_id: str | None) -> dict[str, Any] | None:
    """None if there is no message, or if its channel did not say what it costs."""
    if message_id is None:
        return None
    found = await page.call("GET", f"/messages/{message_id}", base=Base.MESSAGING)
    pricing: dict[str, Any] | None = found["data"]["pricing"]
    return pricing


async def _mask_codes(page: PageRequest, record: dict[str, Any]) -> dict[str, Any]:
    """Without the one-time codes of a send that is, or may have been, for an authentication template."""
    body, name = record["request"]["body"], record["templateId"]
    if record["endpointType"] != "send_message_template":
        return record
    if not isinstance(body, dict):  # not JSON
        return record | {"request": record["request"] | {"body": _LONG_NUMBER.sub(MASK, str(body))}}
    found = (await page.call("GET", "/templates", {"search": name or "", "limit": "100"}, base=Base.MESSAGING))["data"]
    sources = {template["source"] for template in found if template["name"] == name}
    is_plain = sources == {"CRM"} if sources else body.get("template_source") == "CRM"
    return record if is_plain and body.get("template_source") != "AUTH" else hide_values(record)


def hide_values(record: dict[str, Any]) -> dict[str, Any]:
    """Masks the values of a template wherever they are in the record."""
    body = record["request"]["body"]
    values = {text for name in ("params", "components") for text in _list_texts(body.get(name))}
    hidden: dict[str, Any] = _hide(record, sorted(values, key=len, reverse=True))
    return hidden


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(inner)


def _hide(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, dict):
        return {name: _hide(inner, secrets) for name, inner in value.items()}
    return [_hide(inner, secrets) for inner in value] if isinstance(value, list) else value


def show_recipient(body: Any) -> str:
    """The recipient, if the body can be read."""
    to = body.get("to") if isinstance(body, dict) else None
    return _RAW_KEY.sub(_shorten, str(to))[:200] if to is not None else "–"


def mask(record: dict[str, Any]) -> dict[str, Any]:
    """Masks headers that hold secrets, in any spelling, and API keys wherever they are."""
    request = record["request"]
    headers = {name: MASK if _is_secret(name) else value for name, value in request["headers"].items()}
    entry = record | {"request": request | {"headers": headers | _mask_key(request["headers"])}}
    masked: dict[str, Any] = _replace(entry)
    return masked


def build_text(snapshot: Any) -> str:
    return json.dumps(snapshot, indent=2, ensure_ascii=False)


def _is_secret(header: str) -> bool:
    return _NO_LETTER.sub("", header.lower()) in SECRET_HEADERS


def _mask_key(headers: dict[str, str]) -> dict[str, str]:
    """The last characters of the key, if it looks like one."""
    return {name: value for name, value in headers.items() if _is_secret(name) and _RAW_KEY.fullmatch(value)}


def _replace(value: Any) -> Any:
    if isinstance(value, str):
        return _RAW_KEY.sub(_shorten, value)
    if isinstance(value, dict):
        return {_replace(name): _replace(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replace(inner) for inner in value]
    return value


def _shorten(found: re.Match[str]) -> str:
    """As the list of keys shows it: prefix and last four characters. A fragment is masked whole."""
    return f"{found[1]}{MASK}{found[0][-4:] if len(found[0]) >= WHOLE_KEY else ''}"
