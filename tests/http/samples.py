"""Requests made up from declarations: a path and a valid body for any endpoint, so that generated tests reach all."""

from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import uuid4

import httpx
from msgspec import UNSET, inspect, to_builtins

from sapa.http.endpoints import Endpoint, camel
from tests.http.wire import eventually
from tests.messaging.files.corpus import make_image

_PLAIN: dict[type, Any] = {
    inspect.AnyType: {},
    inspect.BoolType: False,
    inspect.DateTimeType: "2026-01-31T09:30:00Z",
    inspect.DateType: "2026-01-31",
    inspect.NoneType: None,
    inspect.UUIDType: "01890a5d-ac96-774b-bcce-b302099a8057",
}


def address_of(endpoint: Endpoint, ids: Mapping[str, str] | None = None) -> str:
    """The endpoint's path with these ids in it; ids that nobody has for those not given."""
    path = endpoint.path
    for name, kind in endpoint.path_ids.items():
        unknown = kind.example if kind else "unknown"
        path = path.replace(f"{{{camel(name)}}}", (ids or {}).get(name, unknown))
    return path


UPLOADS: dict[str, dict[str, Any]] = {
    "/imports": {
        "params": {"resource": "customers"},
        "headers": {"content-type": "text/csv"},
        "content": b"email\n",
    },
    "/shipping/settlements/file": {
        "params": {"provider": "custom", "reference": "S-1", "remittedAt": "2026-01-31T09:30:00Z"},
        "headers": {"content-type": "text/csv"},
        "content": b"awb,amount\nJNE0001234567,147534\n",
    },
}
"""A file for each endpoint that takes one, as options of a request."""


FILE = b"kopi"
FILES = {"/product-pictures": make_image("PNG")}
"""What endpoints take that do not take every file."""


def sample_request(endpoint: Endpoint) -> dict[str, Any]:
    """What to send to an endpoint, as options of a request."""
    if endpoint.takes_file:
        return {"content": FILES.get(endpoint.path, FILE)}
    return UPLOADS[endpoint.path] if endpoint.uploads else {"json": sample_body(endpoint)}


def sample_body(endpoint: Endpoint) -> Any:
    """A body that the endpoint's type accepts, or None when it takes none."""
    return None if endpoint.body is None else sample(_read_type(endpoint.body))


@cache
def _read_type(body: Any) -> inspect.Type:
    return inspect.type_info(body)


def sample(kind: inspect.Type) -> Any:
    """The first example of a type, else its required parts."""
    if isinstance(kind, inspect.Metadata):
        examples = (kind.extra_json_schema or {}).get("examples")
        return examples[0] if examples else sample(kind.type)
    if isinstance(kind, inspect.StructType):
        tag = {} if kind.tag_field is None else {kind.tag_field: kind.tag}
        return tag | {field.encode_name: sample(field.type) for field in kind.fields if _is_needed(field)}
    if isinstance(kind, inspect.UnionType):
        return sample(next(option for option in kind.types if not isinstance(option, inspect.NoneType)))
    if isinstance(kind, (inspect.LiteralType, inspect.EnumType)):
        return _first_choice(kind)
    return _plain(kind)


def _is_needed(field: inspect.Field) -> bool:
    """Required, or shown by an example: optional fields may be required together with one another."""
    return field.required or _has_example(field.type)


def _has_example(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_has_example(option) for option in kind.types)
    return isinstance(kind, inspect.Metadata) and "examples" in (kind.extra_json_schema or {})


def _first_choice(kind: inspect.LiteralType | inspect.EnumType) -> Any:
    return kind.values[0] if isinstance(kind, inspect.LiteralType) else to_builtins(next(iter(kind.cls)))


def _plain(kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.StrType):
        return "x" * (kind.min_length or 1)
    if isinstance(kind, (inspect.IntType, inspect.FloatType, inspect.DecimalType)):
        return getattr(kind, "ge", None) or 1
    if isinstance(kind, (inspect.ListType, inspect.SetType)):
        return [sample(kind.item_type)] * (kind.min_length or 0)
    if isinstance(kind, inspect.DictType):
        return {}
    return _PLAIN.get(type(kind), UNSET)


async def an_agent(api: httpx.AsyncClient) -> str:
    response = await api.post(f"{root_of(api)}/messaging/v1/agents", json={"name": "Sari"})
    assert response.status_code == 201, response.text
    return str(response.json()["data"]["id"])


async def a_ticket(api: httpx.AsyncClient, source: str = "MAIL") -> str:
    """Of a customer who writes by mail or WhatsApp, which needs a test key."""
    base = f"{root_of(api)}/messaging/v1"
    sender = f"{uuid4().hex}@example.com" if source == "MAIL" else f"+62812{uuid4().int % 10**8:08d}"
    response = await api.post(f"{base}/sandbox/inbound", json={"source": source, "from": sender, "text": "Halo"})
    assert response.status_code == 200, response.text

    async def look() -> str | None:
        tickets = (await api.get(f"{base}/tickets")).json()["data"]
        return next((str(ticket["id"]) for ticket in tickets if ticket["clientNumber"] == sender), None)

    return await eventually(look)


async def two_tickets(api: httpx.AsyncClient) -> list[str]:
    """Of one customer, over two channels."""
    base = f"{root_of(api)}/messaging/v1"
    sender = f"+62812{uuid4().int % 10**8:08d}"
    for source in ("MSGAPP_CLOUD", "MSGAPP_COEX"):
        await api.post(f"{base}/sandbox/inbound", json={"source": source, "from": sender, "text": "Halo"})

    async def look() -> list[str] | None:
        tickets = (await api.get(f"{base}/tickets")).json()["data"]
        found = [str(ticket["id"]) for ticket in tickets if ticket["clientNumber"] == sender]
        return found if len(found) > 1 else None

    return await eventually(look)


async def a_rating(api: httpx.AsyncClient) -> str:
    """Of a ticket that an agent resolved."""
    base = f"{root_of(api)}/messaging/v1"
    assert (await api.put(f"{base}/support/settings", json={"askRating": True})).status_code == 200
    ticket, agent_id = await a_ticket(api), int(await an_agent(api))
    await api.post(f"{base}/tickets/{ticket}/assign", json={"agentId": agent_id})
    await api.post(f"{base}/tickets/{ticket}/resolve", json={"agentId": agent_id})
    return str((await api.get(f"{base}/ratings", params={"ticketId": ticket})).json()["data"][0]["id"])


async def a_scheduled_reply(api: httpx.AsyncClient) -> str:
    body = {"agentId": int(await an_agent(api)), "body": "Halo", "sendAt": "2099-01-31T02:00:00Z"}
    path = f"{root_of(api)}/messaging/v1/tickets/{await a_ticket(api)}/scheduled-replies"
    response = await api.post(path, json=body)
    assert response.status_code == 201, response.text
    return str(response.json()["data"]["id"])


async def a_webhook_endpoint(api: httpx.AsyncClient) -> str:
    """At a name that nobody has."""
    response = await api.post("/webhook-endpoints", json={"url": "https://hooks.example.com/sapa"})
    assert response.status_code == 201, response.text
    return str(response.json()["data"]["id"])


async def a_webhook_delivery(api: httpx.AsyncClient) -> str:
    """Of an event that an endpoint of its own gets, tried once: the next attempt is half a minute away."""
    endpoint = await a_webhook_endpoint(api)
    response = await api.post("/customers", json={"email": f"{uuid4().hex}@example.com"})
    assert response.status_code == 201, response.text

    async def look() -> str | None:
        found = (await api.get("/webhook-deliveries", params={"endpointId": endpoint})).json()["data"]
        return str(found[0]["id"]) if found and found[0]["attempts"] else None

    return await eventually(look)


def root_of(client: httpx.AsyncClient) -> str:
    """The installation's address."""
    return str(client.base_url.copy_with(path="/")).rstrip("/")


async def a_settlement(api: httpx.AsyncClient) -> str:
    """Of a parcel that nobody knows."""
    line = {"parcel": f"JNE{uuid4().hex}", "amount": 147534}
    body = {"provider": "custom", "reference": uuid4().hex, "remittedAt": "2026-01-31T09:30:00Z", "lines": [line]}
    answer = await api.post("/shipping/settlements", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def a_difference(api: httpx.AsyncClient) -> str:
    params = {"settlementId": await a_settlement(api)}
    return str((await api.get("/shipping/cod-differences", params=params)).json()["data"][0]["id"])


async def a_shipment(api: httpx.AsyncClient) -> str:
    """A draft that no carrier has to hear of."""
    body = {"provider": "custom", "delivery": {"name": "Ayu", "address": "Jl. Merdeka 17"}}
    answer = await api.post("/shipping/shipments", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def a_channel_event(api: httpx.AsyncClient) -> str:
    base, sender = f"{root_of(api)}/messaging/v1", f"+62812{uuid4().int % 10**8:08d}"
    body = {"source": "MSGAPP_CLOUD", "from": sender, "preference": "stop"}
    answer = await api.post(f"{base}/sandbox/inbound", json=body)
    assert answer.status_code == 200, answer.text

    async def look() -> str | None:
        events = (await api.get(f"{base}/channel-events")).json()["data"]
        return next((str(event["id"]) for event in events if event["clientNumber"] == sender), None)

    return await eventually(look)
