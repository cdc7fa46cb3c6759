import json
from typing import Any

import httpx
import pytest

from tests.customers.test_api import refusal

KEYS = [f"k{number}" for number in range(300)]


def texts(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


def build_addresses(count: int) -> list[dict[str, Any]]:
    return [{"address1": f"A {number}"} for number in range(count)]


def build_address(**fields: str) -> list[dict[str, str]]:
    return [{"address1": "A", **fields}]


def apps(count: int) -> list[dict[str, str]]:
    return [{"app": f"app {number}", "status": "subscribe"} for number in range(count)]


LIMITS: list[tuple[str, Any, Any]] = [
    ("email", f"a@{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 60}.example", f"a@{('b' * 59 + '.') * 4}{'c' * 20}"),
    ("phoneNumber", "0812" + " " * 29 + "3456789", "0812" + " " * 30 + "3456789"),
    ("externalId", "€" * 255, "€" * 256),
    ("firstName", "😀" * 255, "x" * 256),
    ("lastName", "😀" * 255, "x" * 256),
    ("imageUrl", "http://x/" + "u" * 2039, "http://x/" + "u" * 2040),
    ("tags", texts(250), texts(251)),
    ("tags", ["😀" * 100], ["x" * 101]),
    ("addresses", build_addresses(50), build_addresses(51)),
    ("addresses", [{"address1": "x" * 500}], [{"address1": "x" * 501}]),
    *(
        ("addresses", build_address(**{field: "x" * most}), build_address(**{field: "x" * (most + 1)}))
        for field, most in {
            "firstName": 255, "lastName": 255, "phone": 500, "address2": 500, "city": 500, "province": 500,
            "country": 500, "zip": 500,
        }.items()
    ),
    ("additionalData", dict.fromkeys(KEYS[:200], 1), dict.fromkeys(KEYS[:201], 1)),
    ("additionalData", {"k" * 100: 1}, {"k" * 101: 1}),
    ("additionalData", {"k": "x" * 5000}, {"k": "x" * 5001}),
    ("subscriptionStatus", apps(50), apps(51)),
    ("subscriptionStatus", [{"app": "x" * 50, "status": "subscribe"}], [{"app": "x" * 51, "status": "subscribe"}]),
]  # fmt: skip


@pytest.mark.parametrize(("field", "fits", "exceeds"), LIMITS, ids=[f"{n} {row[0]}" for n, row in enumerate(LIMITS)])
async def test_each_limit_is_where_the_document_says(
    api: httpx.AsyncClient, field: str, fits: Any, exceeds: Any
) -> None:
    reach = {"phoneNumber": "0812 9999 999"} if field == "email" else {"email": "a@example.com"}
    over = await api.post("/customers", json={**reach, field: exceeds})
    assert field in refusal(over, 400, "VALIDATION_ERROR")["details"][0]["field"]
    made = await api.post("/customers", json={**reach, field: fits})
    assert made.status_code == 201, made.text
    assert (await api.get(f"/customers/{made.json()['data']['id']}")).json() == made.json()
    if field != "externalId":
        response = await api.put(f"/customers/{made.json()['data']['id']}", json={field: exceeds})
        assert field in refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"]


async def test_a_customer_of_the_largest_body_is_stored_and_found(api: httpx.AsyncClient) -> None:
    """Every index takes the longest values, and the event that goes with them is written."""
    body: dict[str, Any] = {
        "email": f"{'é' * 60}@example.com",
        "externalId": "😀" * 255,
        "firstName": "😀" * 255,
        "lastName": "ΐ" * 255,
        "tags": ["😀" * 97 + f"{number:03}" for number in range(250)],
        "addresses": [{"address1": f"{number} " + "😀" * 450} for number in range(50)],
        "additionalData": {f"key {number}": "x" * 4000 for number in range(200)},
    }
    assert 950_000 < len(json.dumps(body, ensure_ascii=False).encode()) < 1_048_576
    made = await api.post("/customers", content=json.dumps(body, ensure_ascii=False).encode(),
                          headers={"content-type": "application/json"})  # fmt: skip
    assert made.status_code == 201, made.text[:300]
    for query in ({"search": "😀" * 200}, {"search": "ΐ" * 200}, {"tags": body["tags"][249]}, {"sort": "lastName:asc"}):
        assert (await api.get("/customers", params=query)).json()["data"] == [made.json()["data"]]
