"""Random orders that are paid, refunded, edited and fulfilled in parts, over HTTP and in a model of their own: amounts,
statuses, stock and points agree after every step."""

import copy
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from sapa.db.pool import open_database
from tests import depth
from tests.conftest import TLS, Installation
from tests.factories import make_company, make_key
from tests.orders import money_model as model
from tests.orders.money_model import Adjustment, ModelLine, ModelOrder, Refused
from tests.orders.test_model import run

MONEY = st.sampled_from(["0", "0.01", "0.1", "3.33", "9.99", "19.99", "23.9", "150"])
PERCENT = st.sampled_from(["0", "2.5", "10", "25", "33.3333", "100"])
ADJUSTMENTS = st.one_of(
    st.tuples(st.just("amount"), st.sampled_from(["0.01", "1", "5.55"])), st.tuples(st.just("percentage"), PERCENT)
)
TAXES = st.one_of(
    st.tuples(st.just("rate"), st.sampled_from(["11", "12", "7.7"]), st.booleans()),
    st.tuples(st.just("amount"), st.sampled_from(["0.07", "2.31"]), st.booleans()),
)
NEW_LINES = st.lists(
    st.tuples(MONEY, st.integers(1, 7), st.booleans(), st.one_of(st.none(), ADJUSTMENTS)), min_size=1, max_size=3
)
CONTENTS = {
    "discounts": st.lists(ADJUSTMENTS, max_size=2),
    "shipping": st.lists(st.tuples(MONEY, st.one_of(st.none(), ADJUSTMENTS)), max_size=2),
    "fees": st.lists(MONEY, max_size=1),
    "taxes": st.lists(TAXES, max_size=2),
}
STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["active", "archived", "cancelled", "refunded"]),
        "fulfillmentStatus": st.sampled_from(["unfulfilled", "fulfilled"]),
        "financialStatus": st.sampled_from(["pending", "paid", "refunded"]),
    },
)
SHARES = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(1), Fraction(11, 10)])
VARIANT_PRICE = "12.34"
RETRIES = 20
POINTS = [{"currencyAmount": int(amount), "points": points} for amount, points in model.TIERS]


class AnsweredLine(msgspec.Struct, rename="camel"):
    id: str
    quantity: int
    discount_allocation: Decimal
    charged: Decimal
    fulfilled_quantity: int
    refunded_quantity: int


class AnsweredOrder(msgspec.Struct, rename="camel"):
    id: str
    status: str
    fulfillment_status: str
    financial_status: str
    total: Decimal
    subtotal: Decimal
    discount_total: Decimal
    shipping_total: Decimal
    tax_total: Decimal
    total_paid: Decimal
    total_refunded: Decimal
    outstanding: Decimal
    line_items: list[AnsweredLine]


class Answer(msgspec.Struct):
    data: AnsweredOrder


def compare(answered: AnsweredOrder, order: ModelOrder) -> None:
    amounts = {
        "total": order.total,
        "subtotal": order.subtotal,
        "discount_total": order.discount_total,
        "shipping_total": order.shipping_total,
        "tax_total": order.tax_total,
        "total_paid": order.paid,
        "total_refunded": order.refunded,
        "outstanding": order.outstanding,
    }
    assert {name: getattr(answered, name) * 100 for name in amounts} == amounts
    statuses = (answered.status, answered.fulfillment_status, answered.financial_status)
    assert statuses == (order.status, order.fulfillment_status, order.financial_status)
    found = [
        (line.quantity, line.discount_allocation * 100, line.charged * 100, line.fulfilled_quantity,
         line.refunded_quantity)
        for line in answered.line_items
    ]  # fmt: skip
    expected: list[Any] = [
        (line.quantity, line.share, line.charged, line.fulfilled, line.refunded) for line in order.lines
    ]
    assert found == expected
    assert order.total >= 0
    assert 0 <= order.refunded <= order.paid


class PatientClient(httpx.Client):
    """Sends a request again when the server asks for it: a busy machine may lose a connection to its database."""

    def request(self, method: str, url: Any, **options: Any) -> httpx.Response:
        if method != "GET":
            options["headers"] = {"idempotency-key": uuid4().hex}
        response = super().request(method, url, **options)
        for _ in range(RETRIES):
            if response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                break
            time.sleep(float(response.headers["retry-after"]))
            response = super().request(method, url, **options)
        return response


class Orders(RuleBasedStateMachine):
    installation: Installation
    existing = Bundle("existing")
    steps = 0
    """Of all examples; many have fewer than they may have."""

    @invariant()
    def count_step(self) -> None:
        type(self).steps += 1

    @initialize(stock=st.integers(0, 40))
    def open_shop(self, stock: int) -> None:
        key = run(self._open())
        self.api = PatientClient(
            base_url=self.installation.customer_base, headers={"x-api-key": key}, timeout=120, verify=TLS
        )
        self.orders: dict[str, ModelOrder] = {}
        self.stock = stock
        variants = [{"title": "M", "price": float(VARIANT_PRICE), "inventoryQuantity": stock}]
        product = self.api.post("/products", json={"name": "Kopi", "variants": variants}).json()["data"]
        self.product, self.variant = product["id"], product["variants"][0]["id"]
        self.customer = self.api.post("/customers", json={"email": "ayu@example.com"}).json()["data"]["id"]
        assert self.api.post("/loyalty/point-conversion", json={"tiers": POINTS}).status_code == 200

    async def _open(self) -> str:
        async with open_database(self.installation.server.app_url) as database:
            company = await make_company(database, currency="USD")
            return (await make_key(database, company.live)).raw

    @rule(target=existing, lines=NEW_LINES, contents=st.fixed_dictionaries({}, optional=CONTENTS))
    def place(self, lines: list[Any], contents: dict[str, Any]) -> Any:
        made = [self._line(line) for line in lines]
        order = ModelOrder([line for line, _ in made], **contents)
        units = sum(line.quantity for line in order.lines if line.is_variant)
        body = {"lineItems": [body for _, body in made], "customerId": self.customer, **build_contents(contents)}
        code = self._try(model.price, order)
        if code is None and units > self.stock:
            code = "INSUFFICIENT_STOCK"
        response = self.api.post("/orders", json=body)
        if code is not None:
            self._expect_refusal(response, code)
            return multiple()
        assert response.status_code == 201, (body, response.text)
        order.taken = units
        self.stock -= units
        answered = msgspec.json.decode(response.content, type=Answer).data
        self._keep(answered, order)
        return answered.id

    def _line(self, line: tuple[str, int, bool, Adjustment | None]) -> tuple[ModelLine, dict[str, Any]]:
        price, quantity, is_variant, discount = line
        body: dict[str, Any] = {"quantity": quantity, "discount": discount and build_adjustment(discount)}
        body |= {"productVariantId": self.variant} if is_variant else {"title": "Gula", "price": float(price)}
        return ModelLine(model.cents(VARIANT_PRICE if is_variant else price), quantity, is_variant, discount), body

    @rule(id=existing, share=SHARES)
    def pay(self, id: str, share: Fraction) -> None:
        amount = int(self.orders[id].outstanding * share)
        if amount > 0:
            body = {"amount": amount / 100, "method": "cash"}
            self._step(id, "POST", "/payments", body, lambda order: model.pay(order, amount))

    @rule(
        id=existing,
        picked=st.lists(st.integers(1, 3), max_size=3),
        restock=st.booleans(),
        shipping=st.one_of(st.none(), SHARES),
        amount=st.one_of(st.none(), st.none(), st.just(Fraction(0)), SHARES),
    )
    def refund(
        self, id: str, picked: list[int], restock: bool, shipping: Fraction | None, amount: Fraction | None
    ) -> None:
        order = self.orders[id]
        units = dict(zip(range(len(order.lines)), picked, strict=False))
        shipped = None if shipping is None else int(order.shipping_left * shipping)
        back = None if amount is None else int((order.paid - order.refunded) * amount)
        body = {
            "lineItems": [
                {"id": order.lines[place].id, "quantity": quantity, "restock": restock}
                for place, quantity in units.items()
            ],
            "shipping": None if shipped is None else shipped / 100,
            "amount": None if back is None else back / 100,
        }
        self._step(id, "POST", "/refunds", body, lambda changed: model.refund(changed, units, restock, shipped, back))

    @rule(id=existing, picked=st.one_of(st.none(), st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    def fulfil(self, id: str, picked: list[int] | None) -> None:
        lines = self.orders[id].lines
        units = None if picked is None else dict(zip(range(len(lines)), picked, strict=False))
        body = None
        if units is not None:
            body = [{"id": lines[place].id, "quantity": quantity} for place, quantity in units.items()]
        self._step(id, "POST", "/fulfillments", {"lineItems": body}, lambda order: model.fulfil(order, units))

    @rule(
        id=existing,
        factors=st.lists(st.sampled_from([0, 1, 1, 2, 3]), min_size=6, max_size=6),
        more=st.one_of(st.just([]), NEW_LINES),
        contents=st.fixed_dictionaries({}, optional=CONTENTS),
    )
    def edit(self, id: str, factors: list[int], more: list[Any], contents: dict[str, Any]) -> None:
        lines = self.orders[id].lines
        quantities = [
            min(line.quantity * factor // 2 or factor, 50) for line, factor in zip(lines, factors, strict=False)
        ]
        quantities += [line.quantity for line in lines[len(factors) :]]
        made = [self._line(line) for line in more] if len(lines) < 6 else []
        if not any(quantities) and not made:
            return
        kept = [
            {"id": line.id, "quantity": quantity} for line, quantity in zip(lines, quantities, strict=True) if quantity
        ]
        body = {"lineItems": [*kept, *(body for _, body in made)], **build_contents(contents)}
        self._step(
            id, "PUT", "", body,
            lambda order: model.edit(order, quantities, [line for line, _ in made], self.stock, **contents),
        )  # fmt: skip

    @rule(id=existing, patch=STATUSES)
    def set_statuses(self, id: str, patch: dict[str, str]) -> None:
        self._step(id, "PUT", "", patch, lambda order: model.set_statuses(order, patch))

    @rule()
    def look_at_shelf_and_wallet(self) -> None:
        variants = self.api.get(f"/products/{self.product}").json()["data"]["variants"]
        assert variants[0]["inventoryQuantity"] == self.stock
        assert self.stock >= 0
        wallet = self.api.get(f"/loyalty/customers/{self.customer}/wallet").json()["data"]
        assert int(wallet["availablePoints"]) == sum(order.points for order in self.orders.values())

    def _step(self, id: str, method: str, path: str, body: Any, change: Any) -> None:
        """Takes a step in both, on a copy of the model's order: a refused step changes nothing."""
        after = copy.deepcopy(self.orders[id])
        moved: list[Any] = []
        code = self._try(lambda order: moved.append(change(order)), after)
        response = self.api.request(method, f"/orders/{id}{path}", json=body)
        if code is None:
            assert response.is_success, (body, response.text)
            self.stock += (moved[0] or 0) if isinstance(moved[0], int) else 0
        else:
            self._expect_refusal(response, code)
            after = self.orders[id]
        found = response if method == "PUT" and code is None else self.api.get(f"/orders/{id}")
        self._keep(msgspec.json.decode(found.content, type=Answer).data, after)

    def _try(self, change: Any, order: ModelOrder) -> str | None:
        try:
            change(order)
        except Refused as refused:
            return str(refused)
        return None

    def _expect_refusal(self, response: httpx.Response, code: str) -> None:
        assert not response.is_success, (code, response.text)
        assert response.json()["error"]["code"] == code, response.text

    def _keep(self, answered: AnsweredOrder, order: ModelOrder) -> None:
        compare(answered, order)
        for line, shown in zip(order.lines, answered.line_items, strict=True):
            line.id = shown.id
        self.orders[answered.id] = order

    def teardown(self) -> None:
        if not hasattr(self, "orders"):
            return
        try:
            self.look_at_shelf_and_wallet()
            drift = self.api.get("/loyalty/reconciliation").json()["data"]["drift"]
            assert drift == []
        finally:
            self.api.close()


def build_adjustment(adjustment: Adjustment) -> dict[str, Any]:
    kind, text = adjustment
    return {kind: float(text)}


def build_contents(contents: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if "discounts" in contents:
        body["discounts"] = [build_adjustment(one) for one in contents["discounts"]]
    if "shipping" in contents:
        body["shippingLines"] = [
            {"title": "JNE", "price": float(price), "discount": discount and build_adjustment(discount)}
            for price, discount in contents["shipping"]
        ]
    if "fees" in contents:
        body["fees"] = [{"title": "Asuransi", "amount": float(amount)} for amount in contents["fees"]]
    if "taxes" in contents:
        body["taxLines"] = [
            {"title": "PPN", kind: float(text), "included": included} for kind, text, included in contents["taxes"]
        ]
    return body


def drive(installation: Installation, examples: int, steps: int) -> int:
    """Returns how many steps were taken."""

    class OverHttp(Orders):
        pass

    OverHttp.installation = installation
    run_state_machine_as_test(
        OverHttp,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return OverHttp.steps


def test_money_stock_and_points_behave_like_their_model(installation: Installation) -> None:
    drive(installation, depth.examples(16), 40)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(4))
def test_a_hundred_thousand_steps_do_not_drift(installation: Installation, part: int) -> None:
    """In parts, which run side by side."""
    steps = 0
    while steps < 25_000:
        steps += drive(installation, 100, 100)
        print(f"part {part}: {steps:,} steps")
