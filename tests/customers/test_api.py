import re
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import make_company, make_customer, make_key

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z").fullmatch
CUSTOMER_ID = re.compile(r"cust_[0-7][0-9a-hjkmnp-tv-z]{25}").fullmatch
ADDRESS_ID = re.compile(r"addr_[0-7][0-9a-hjkmnp-tv-z]{25}").fullmatch

EVERYTHING: dict[str, Any] = {
    "email": "Ayu.Lestari@Example.com",
    "phoneNumber": "0812-3456-789",
    "externalId": "shop-1042",
    "firstName": "Ayu",
    "lastName": "Lestari",
    "imageUrl": "https://example.com/ayu.png",
    "tags": ["vip", "jakarta"],
    "addresses": [
        {
            "firstName": "Ayu",
            "lastName": "Lestari",
            "phone": "0812",
            "address1": "Jl. Merdeka 17",
            "address2": "Lantai 2",
            "city": "Bandung",
            "province": "Jawa Barat",
            "country": "Indonesia",
            "zip": "40111",
            "mainAddress": True,
        }
    ],
    "additionalData": {"card": "A-17", "visits": 12, "score": 0.5},
    "subscriptionStatus": [{"app": "CRM", "status": "subscribe"}],
}
FIELDS = [
    "id", "externalId", "email", "phoneNumber", "firstName", "lastName", "imageUrl", "tags", "addresses",
    "additionalData", "subscriptionStatus", "createdAt", "updatedAt",
]  # fmt: skip


def refusal(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The error of a response that must be that one."""
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    error: dict[str, Any] = response.json()["error"]
    return error


def taken_by(customer: dict[str, Any], field: str) -> dict[str, str]:
    return {"field": field, "message": "belongs to an existing customer", "id": customer["id"]}


@pytest.mark.smoke
async def test_a_customer_is_created_with_every_field_and_read_back(api: httpx.AsyncClient) -> None:
    response = await api.post("/customers", json=EVERYTHING)
    assert response.status_code == 201
    assert list(response.json()) == ["data"]
    made = response.json()["data"]
    assert list(made) == FIELDS
    assert CUSTOMER_ID(made["id"])
    assert INSTANT(made["createdAt"])
    assert made["updatedAt"] == made["createdAt"]
    address = made["addresses"][0]
    assert ADDRESS_ID(address["id"])
    sent = EVERYTHING["addresses"][0]
    assert address == {"id": address["id"], **sent}
    assert made == {
        **EVERYTHING,
        "id": made["id"],
        "email": "Ayu.Lestari@example.com",
        "phoneNumber": "+628123456789",
        "addresses": [address],
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
    }
    assert (await api.get(f"/customers/{made['id']}")).json() == {"data": made}


async def test_what_is_absent_is_null_or_empty_and_never_left_out(api: httpx.AsyncClient) -> None:
    made = (await api.post("/customers", json={"email": "a@example.com"})).json()["data"]
    assert list(made) == FIELDS
    assert made == {
        **dict.fromkeys(FIELDS),
        "id": made["id"],
        "email": "a@example.com",
        "tags": [],
        "addresses": [],
        "additionalData": {},
        "subscriptionStatus": [],
        "createdAt": made["createdAt"],
        "updatedAt": made["updatedAt"],
    }


async def test_an_address_has_all_its_fields_and_the_first_is_the_main_one(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, addresses=[{"address1": "A"}, {"address1": "B"}])
    first, second = made["addresses"]
    empty = dict.fromkeys(["firstName", "lastName", "phone", "address2", "city", "province", "country", "zip"])
    assert first == {**empty, "id": first["id"], "address1": "A", "mainAddress": True}
    assert second == {**empty, "id": second["id"], "address1": "B", "mainAddress": False}
    assert list(first) == [
        "id", "firstName", "lastName", "phone", "address1", "address2", "city", "province", "country", "zip",
        "mainAddress",
    ]  # fmt: skip


@pytest.mark.parametrize("body", [{}, {"firstName": "Ayu"}, {"email": None, "phoneNumber": None}])
async def test_an_email_or_a_phone_number_is_required(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    error = refusal(await api.post("/customers", json=body), 400, "VALIDATION_ERROR")
    assert "email" in error["message"]
    assert "phoneNumber" in error["message"]


async def test_a_phone_number_alone_is_enough(api: httpx.AsyncClient) -> None:
    made = (await api.post("/customers", json={"phoneNumber": "+62 812 3456 789"})).json()["data"]
    assert (made["email"], made["phoneNumber"]) == (None, "+628123456789")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ayu@example.com", "ayu@example.com"),
        ("ayu@example.com", "AYU@EXAMPLE.COM"),
        ("Ayu.Lestari@example.com", " ayu.lestari@Example.Com "),
        ("JOSÉ@example.com", "josé@example.com"),
        ("ayu@bücher.example", "AYU@BÜCHER.example"),
    ],
)
async def test_an_email_is_unique_in_any_case(api: httpx.AsyncClient, first: str, second: str) -> None:
    made = await make_customer(api, email=first)
    error = refusal(await api.post("/customers", json={"email": second}), 409, "CUSTOMER_EXISTS")
    assert error["message"] == "A customer with this email already exists."
    assert error["details"] == [taken_by(made, "email")]
    assert (await api.get("/customers")).json()["meta"]["total"] == 1


@pytest.mark.parametrize(
    "email",
    [
        "", " ", "ayu", "ayu@", "@example.com", "ayu example.com", "a b@example.com", "ayu@example..com",
        "ayu@@example.com", "ayu@example.com\n.x", "ayu@-example.com", f"ayu@{'a' * 64}.com", "Ayu <ayu@example.com>",
    ],
)  # fmt: skip
async def test_an_invalid_email_is_refused_by_name(api: httpx.AsyncClient, email: str) -> None:
    error = refusal(await api.post("/customers", json={"email": email}), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "email"
    assert "e-mail address, such as" in error["message"]


@pytest.mark.parametrize(
    ("region", "written", "stored"),
    [
        ("ID", "08123456789", "+628123456789"),
        ("ID", "0812-3456-789", "+628123456789"),
        ("ID", "(0812) 3456 789", "+628123456789"),
        ("ID", "+62 812 3456 789", "+628123456789"),
        ("ID", "62 812 3456 789", "+628123456789"),
        ("ID", "8123456789", "+628123456789"),
        ("ID", "+1 (212) 555-2368", "+12125552368"),
        ("US", "(212) 555-2368", "+12125552368"),
        ("US", "+62 812 3456 789", "+628123456789"),
        ("GB", "020 7946 0958", "+442079460958"),
        ("SG", "8123 4567", "+6581234567"),
    ],
)
async def test_a_phone_number_is_stored_in_e164(
    installation: Installation, database: Database, region: str, written: str, stored: str
) -> None:
    company = await make_company(database, region=region)
    async with connect(installation, (await make_key(database, company.live)).raw) as api:
        made = await make_customer(api, phoneNumber=written)
        assert made["phoneNumber"] == stored
        error = refusal(await api.post("/customers", json={"phoneNumber": stored}), 409, "CUSTOMER_EXISTS")
        assert error["message"] == "A customer with this phoneNumber already exists."
        assert error["details"] == [taken_by(made, "phoneNumber")]


@pytest.mark.parametrize(
    "phone", ["", "call me", "1", "12", "+", "0", "+999123456789", "0812x3", "+62812345678901234567"]
)
async def test_an_invalid_phone_number_is_refused_with_an_example(api: httpx.AsyncClient, phone: str) -> None:
    error = refusal(await api.post("/customers", json={"phoneNumber": phone}), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "phoneNumber"
    assert "+62" in error["message"]


async def test_the_example_of_a_phone_number_is_of_the_companys_region(
    installation: Installation, database: Database
) -> None:
    company = await make_company(database, region="US")
    async with connect(installation, (await make_key(database, company.live)).raw) as api:
        error = refusal(await api.post("/customers", json={"phoneNumber": "x"}), 400, "VALIDATION_ERROR")
        assert "+1" in error["message"]


async def test_two_companies_and_two_environments_may_have_the_same_customer(
    installation: Installation, database: Database
) -> None:
    one, two = await make_company(database), await make_company(database)
    for company_id in (one.live, one.test, two.live):
        async with connect(installation, (await make_key(database, company_id)).raw) as api:
            assert (await api.post("/customers", json=EVERYTHING)).status_code == 201
            assert (await api.get("/customers")).json()["meta"]["total"] == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", 1), ("email", ["a@example.com"]), ("phoneNumber", 812), ("firstName", 1), ("tags", "vip"),
        ("tags", [1]), ("tags", [None]), ("addresses", {}), ("addresses", [{}]), ("addresses", [{"address1": 1}]),
        ("addresses", [{"address1": ""}]), ("addresses", [{"address1": None}]),
        ("addresses", [{"address1": "A", "street": "B"}]), ("addresses", [{"address1": "A", "mainAddress": "yes"}]),
        ("additionalData", []), ("additionalData", {"a": None}), ("additionalData", {"a": True}),
        ("additionalData", {"a": {}}), ("additionalData", {"a": []}), ("additionalData", {"": 1}),
        ("subscriptionStatus", {}), ("subscriptionStatus", ["CRM"]), ("subscriptionStatus", [{"app": "CRM"}]),
        ("subscriptionStatus", [{"app": "CRM", "status": "subscribed"}]),
        ("subscriptionStatus", [{"app": "CRM", "status": "SUBSCRIBE"}]),
        ("subscriptionStatus", [{"app": "", "status": "subscribe"}]),
        ("subscriptionStatus", [{"app": "CRM", "status": "subscribe", "since": 1}]),
        ("externalId", ""), ("externalId", 7), ("id", "cust_1"), ("createdAt", "2026-01-01T00:00:00Z"), ("emial", "x"),
    ],
)  # fmt: skip
async def test_a_field_of_another_type_is_refused_by_name(api: httpx.AsyncClient, field: str, value: Any) -> None:
    body = {"email": "a@example.com", field: value}
    error = refusal(await api.post("/customers", json=body), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"].startswith(field)
    assert (await api.get("/customers")).json()["meta"]["total"] == 0


@pytest.mark.parametrize("status", ["subscribe", "unsubscribe"])
async def test_a_subscription_is_stored_as_sent(api: httpx.AsyncClient, status: str) -> None:
    sent = [{"app": "CRM", "status": status}, {"app": "shop", "status": "subscribe"}]
    assert (await make_customer(api, subscriptionStatus=sent))["subscriptionStatus"] == sent


async def test_an_app_is_subscribed_once(api: httpx.AsyncClient) -> None:
    twice = [{"app": "CRM", "status": "subscribe"}, {"app": "CRM", "status": "unsubscribe"}]
    error = refusal(
        await api.post("/customers", json={"email": "a@example.com", "subscriptionStatus": twice}),
        400,
        "VALIDATION_ERROR",
    )
    assert error["details"][0]["field"] == "subscriptionStatus[1].app"


async def test_tags_are_stored_once_each_in_their_order(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, tags=["vip", " jakarta ", "vip", "VIP", "日本"])
    assert made["tags"] == ["vip", "jakarta", "VIP", "日本"]


@pytest.mark.parametrize("tag", ["a,b", ",", " ", "\t"])
async def test_a_tag_that_no_search_could_find_is_refused(api: httpx.AsyncClient, tag: str) -> None:
    response = await api.post("/customers", json={"email": "a@example.com", "tags": ["vip", tag]})
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["field"] == "tags[1]"


async def test_additional_data_keeps_strings_and_numbers_exactly(api: httpx.AsyncClient) -> None:
    sent = {
        "z": "",
        "a": 'ü\n"\\ 😀',
        "int": 9007199254740991,
        "low": -9007199254740991,
        "zero": 0,
        "half": -0.5,
        "tiny": 1e-9,
    }
    made = await make_customer(api, additionalData=sent)
    assert made["additionalData"] == sent
    assert list(made["additionalData"]) == list(sent)


@pytest.mark.parametrize("number", [2**53, -(2**53), 10**30, 1e300])
async def test_a_number_that_would_not_stay_exact_is_refused(api: httpx.AsyncClient, number: float) -> None:
    body = {"email": "a@example.com", "additionalData": {"n": number}}
    error = refusal(await api.post("/customers", json=body), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "additionalData.n"
    assert "string" in error["message"]


async def test_a_deleted_customer_is_gone_and_its_email_phone_and_external_id_are_free(api: httpx.AsyncClient) -> None:
    made = (await api.post("/customers", json=EVERYTHING)).json()["data"]
    response = await api.delete(f"/customers/{made['id']}")
    assert (response.status_code, response.content) == (204, b"")
    for method in ("GET", "DELETE", "PUT"):
        again = await api.request(method, f"/customers/{made['id']}", json={} if method == "PUT" else None)
        assert refusal(again, 404, "NOT_FOUND")["message"] == "resource not found"
    assert (await api.get("/customers")).json() == {
        "data": [],
        "meta": {"page": 1, "limit": 20, "total": 0, "hasNextPage": False},
    }
    anew = await api.post("/customers", json=EVERYTHING)
    assert anew.status_code == 201
    assert anew.json()["data"]["id"] != made["id"]


async def test_a_conflict_names_every_field_and_whose_it_is(api: httpx.AsyncClient) -> None:
    first = await make_customer(api, email="ayu@example.com")
    second = await make_customer(api, phoneNumber="08123456789", externalId="shop-1")
    body = {"email": "AYU@example.com", "phoneNumber": "+62 8123456789", "externalId": "shop-1"}
    error = refusal(await api.post("/customers", json=body), 409, "CUSTOMER_EXISTS")
    assert error["details"] == [
        taken_by(first, "email"), taken_by(second, "phoneNumber"), taken_by(second, "externalId"),
    ]  # fmt: skip
    assert (await api.get("/customers")).json()["meta"]["total"] == 2


async def test_a_taken_external_id_is_a_conflict(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, externalId="shop-1")
    body = {"email": "other@example.com", "externalId": "shop-1"}
    error = refusal(await api.post("/customers", json=body), 409, "CUSTOMER_EXISTS")
    assert error["message"] == "A customer with this externalId already exists."
    assert error["details"] == [taken_by(made, "externalId")]
    await make_customer(api, externalId="SHOP-1")
