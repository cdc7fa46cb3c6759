"""Lists that a broken server or cache never ends: the SDKs stop with an error instead of reading them for ever."""

import json
from typing import Any

import httpx2
import pytest

from sapa_client import AsyncSapa, Sapa
from sapa_client.errors import SapaError
from sdk.generator.text import camel
from tests.sdk.node import run_module

NUMBERED = {"page": 1, "limit": 10, "total": 30, "totalPages": 3, "hasNextPage": True, "hasPreviousPage": False}
ENDLESS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "the same number": (("customers", "list"), {"data": [], "meta": NUMBERED}),
    "the same cursor": (
        ("webhooks", "list_deliveries"),
        {"data": [], "pagination": {"limit": 9, "hasMore": True, "nextBefore": "x"}},
    ),
    "no cursor": (
        ("webhooks", "list_deliveries"),
        {"data": [], "pagination": {"limit": 9, "hasMore": True, "nextBefore": None}},
    ),
    "the same timeline": (
        ("customers", "timeline", "cust_1"),
        {
            "data": [],
            "meta": {"total": 9, "hasNextPage": True, "hasPreviousPage": False, "startCursor": "a", "endCursor": "a"},
        },
    ),
}


class RepeatingServer:
    """Sends the same page to every request, and counts them."""

    def __init__(self, page: dict[str, Any]) -> None:
        self.page = page
        self.calls = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.calls += 1
        assert self.calls < 10, "it never ends"
        return httpx2.Response(200, json=self.page)


@pytest.mark.parametrize("case", ENDLESS)
async def test_a_page_that_repeats_ends_the_list(case: str) -> None:
    (resource, method, *ids), page = ENDLESS[case]
    server = RepeatingServer(page)
    transport = httpx2.MockTransport(server)
    sapa = Sapa("svc_test_x", base_url="http://sapa.test", http_client=httpx2.Client(transport=transport))
    with pytest.raises(SapaError, match="repeats a page"):
        list(getattr(getattr(sapa, resource), method)(*ids))
    assert server.calls <= 3
    server.calls = 0
    http = httpx2.AsyncClient(transport=transport)
    waiting = AsyncSapa("svc_test_x", base_url="http://sapa.test", http_client=http)
    with pytest.raises(SapaError, match="repeats a page"):
        [item async for item in getattr(getattr(waiting, resource), method)(*ids)]
    assert server.calls <= 3


ITERATE = """
import { Sapa } from "@sapa/client";
for (const { call, page } of JSON.parse(process.argv[2])) {
  let calls = 0;
  const fetch = async () => {
    if (++calls > 10) throw new Error("it never ends");
    return Response.json(page);
  };
  const sapa = new Sapa({ apiKey: "svc_test_x", baseUrl: "http://sapa.test", maxRetries: 0, fetch });
  const [resource, method, ...ids] = call;
  try {
    for await (const item of sapa[resource][method](...ids));
  } catch (error) {
    console.log(error.name, error.message.includes("repeats a page"), calls <= 3);
  }
}
"""


def test_typescript_ends_the_same_lists() -> None:
    cases = [
        {"call": [resource, camel(method), *ids], "page": page} for (resource, method, *ids), page in ENDLESS.values()
    ]
    assert run_module(ITERATE, json.dumps(cases)) == "SapaError true true\n" * len(cases)
