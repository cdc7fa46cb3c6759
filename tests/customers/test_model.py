"""Random creates, changes, deletes and lists, compared with a plain dictionary."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from sapa.db.pool import Database
from tests import depth
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_key

EMAILS = st.sampled_from(["ayu@example.com", "AYU@example.com", "budi@example.com", "C_d%@example.com", None])
PHONES = st.sampled_from(["08123456789", "+62 812 3456 789", "0813 5555 555", "+1 212 555 2368", None])
E164 = {"08123456789": "+628123456789", "+62 812 3456 789": "+628123456789", "0813 5555 555": "+628135555555",
        "+1 212 555 2368": "+12125552368", None: None}  # fmt: skip
NAMES = st.sampled_from(["Ayu", "ayu", "Budi Santoso", "Straße", "50%", "a_b", "", None])
TAG = st.sampled_from(["vip", "new", "VIP", "日本"])
TAGS = st.lists(TAG, max_size=4)
DATA = st.dictionaries(st.sampled_from(["b", "a", "10", "9"]), st.sampled_from(["x", "", 1, 0.5, -7]), max_size=3)
TERMS = st.sampled_from(
    ["a", "AY", "ayu b", "strasse", "example", "%", "_", "0812", "812-34", "+1 (212)", "555", "zzz"]
)
SORTS = st.sampled_from(["createdAt", "updatedAt", "firstName", "lastName", "email"])
FIELDS = st.fixed_dictionaries(
    {}, optional={"email": EMAILS, "phoneNumber": PHONES, "firstName": NAMES, "lastName": NAMES, "tags": TAGS,
                  "additionalData": DATA}
)  # fmt: skip
EMPTY: dict[str, Any] = {"tags": [], "additionalData": {}}
NEW = {"email": None, "phoneNumber": None, "firstName": None, "lastName": None, **EMPTY}

Fields = dict[str, Any]


def clean(body: Fields) -> Fields:
    """The fields as stored."""
    stored = dict(body)
    if "phoneNumber" in stored:
        stored["phoneNumber"] = E164[stored["phoneNumber"]]
    if "tags" in stored:
        stored["tags"] = list(dict.fromkeys(stored["tags"]))
    return stored


def matches(customer: Fields, term: str) -> bool:
    name = f"{customer['firstName'] or ''} {customer['lastName'] or ''}".casefold()
    phone = (customer["phoneNumber"] or "").lstrip("+")
    plain = term.casefold()
    digits = "".join(filter(str.isdigit, term)).lstrip("0")
    is_phone = bool(digits) and not any(char.isalpha() for char in term)
    return plain in name or plain in (customer["email"] or "").casefold() or (is_phone and digits in phone)


class Customers(RuleBasedStateMachine):
    api: httpx.Client
    existing = Bundle("existing")

    @initialize()
    def start_empty(self) -> None:
        self.model: dict[str, Fields] = {}
        while left := self.api.get("/customers?limit=100").json()["data"]:
            for customer in left:
                assert self.api.delete(f"/customers/{customer['id']}").status_code == 204

    def expected_status(self, fields: Fields, id: str | None) -> int:
        if fields["email"] is None and fields["phoneNumber"] is None:
            return 400
        others = [other for key, other in self.model.items() if key != id]
        emails = {other["email"].lower() for other in others if other["email"]}
        phones = {other["phoneNumber"] for other in others if other["phoneNumber"]}
        taken = (fields["email"] or "").lower() in emails or fields["phoneNumber"] in phones
        return 409 if taken else 201 if id is None else 200

    @rule(target=existing, body=FIELDS)
    def create(self, body: Fields) -> Any:
        fields = {**NEW, **clean(body)}
        response = self.api.post("/customers", json=body)
        assert response.status_code == self.expected_status(fields, None), response.text
        if response.status_code != 201:
            return multiple()
        made = response.json()["data"]
        assert {name: made[name] for name in fields} == fields
        self.model[made["id"]] = made
        return made["id"]

    @rule(id=existing, body=FIELDS)
    def change(self, id: str, body: Fields) -> None:
        before = self.model[id]
        fields = {name: before[name] for name in NEW} | clean(body)
        response = self.api.put(f"/customers/{id}", json=body)
        assert response.status_code == self.expected_status(fields, id), response.text
        if response.status_code == 200:
            changed = response.json()["data"]
            assert changed == {**before, **fields, "updatedAt": changed["updatedAt"]}
            is_same = fields == {name: before[name] for name in fields}
            assert (
                changed["updatedAt"] == before["updatedAt"] if is_same else changed["updatedAt"] >= before["updatedAt"]
            )
            self.model[id] = changed

    @rule(id=consumes(existing))
    def delete(self, id: str) -> None:
        assert self.api.delete(f"/customers/{id}").status_code == 204
        assert self.api.get(f"/customers/{id}").status_code == 404
        del self.model[id]

    @rule(id=existing)
    def read(self, id: str) -> None:
        assert self.api.get(f"/customers/{id}").json() == {"data": self.model[id]}

    @rule(
        term=st.none() | TERMS,
        tags=st.just([]) | st.lists(TAG, max_size=2),
        sort=SORTS,
        descending=st.booleans(),
        limit=st.integers(1, 4),
    )
    def find(self, term: str | None, tags: list[str], sort: str, descending: bool, limit: int) -> None:
        found = [one for one in self.model.values() if set(tags) <= set(one["tags"])]
        found = [one for one in found if term is None or matches(one, term)]
        found.sort(key=lambda one: (one[sort] is None, (one[sort] or "").lower(), one["id"]), reverse=descending)
        query: dict[str, Any] = {"sort": f"{sort}:{'desc' if descending else 'asc'}", "limit": limit}
        query |= {name: value for name, value in {"search": term, "tags": ",".join(tags)}.items() if value}
        pages = [self.api.get("/customers", params={**query, "page": page}).json() for page in (1, 2)]
        assert [page["data"] for page in pages] == [found[:limit], found[limit : 2 * limit]]
        assert [page["meta"]["total"] for page in pages] == [len(found)] * 2

    @invariant()
    def the_total_is_exact(self) -> None:
        assert self.api.get("/customers?limit=1").json()["meta"]["total"] == len(getattr(self, "model", {}))


@pytest.fixture
async def key(database: Database, company: Environments) -> str:
    return (await make_key(database, company.live)).raw


@pytest.fixture
def client(installation: Installation, key: str) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=installation.customer_base, headers={"x-api-key": key}, timeout=120, verify=TLS
    ) as opened:
        yield opened


def test_customers_behave_like_a_dictionary(client: httpx.Client) -> None:
    class OverHttp(Customers):
        api = client

    run_state_machine_as_test(
        OverHttp,
        settings=settings(
            max_examples=depth.examples(20),
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
