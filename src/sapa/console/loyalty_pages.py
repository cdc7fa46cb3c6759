"""Loyalty: wallets, their ledger, redemptions, and whether the ledger adds up."""

from secrets import token_hex
from typing import Any

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.fields import parse_number
from sapa.console.listing import read_list
from sapa.console.routes import (
    DEVELOPERS,
    EVERYBODY,
    PageRequest,
    console,
    go_to,
)
from sapa.http.bodies import build_decoder, decode_body
from sapa.http.errors import Invalid
from sapa.loyalty import actions as loyalty
from sapa.loyalty.reconciliation import actions as reconciliation
from sapa.loyalty.types import AdjustmentIn
from sapa.values.json import encode

DIRECTIONS = ("points_added", "points_deducted")
STATUSES = ("reserved", "committed", "released", "expired", "failed")
PARTS = "20"
MOST_REWARDS = "100"
ENDINGS = ("commit", "release", "fail")
_adjustment = build_decoder(AdjustmentIn)


@console.get("/{environment}/loyalty", roles=EVERYBODY)
async def list_wallets(visit: PageRequest) -> Response:
    shown = await read_list(visit, "/customers")
    ids = [customer["id"] for customer in shown["items"]]
    async with visit.context.database.connection() as db:
        wallets = {wallet.customer_id: wallet for wallet in await loyalty.list_wallets(db, visit.company_id, ids)}
        check = await reconciliation.find_check(db, visit.company_id)
    return visit.show("loyalty.html", wallets=wallets, check=check, **shown)


@console.get("/{environment}/loyalty/check", roles=DEVELOPERS)
async def check_ledger(visit: PageRequest) -> Response:
    result = (await visit.ask("GET", "/loyalty/reconciliation"))["data"]
    return visit.show("loyalty_check.html", result=result)


@console.get("/{environment}/loyalty/{id}", roles=EVERYBODY)
async def show_wallet(visit: PageRequest) -> Response:
    id, asked = visit.request.path_params["id"], visit.request.query_params
    direction, status = asked.get("filter", ""), asked.get("status", "")
    customer = (await visit.ask("GET", f"/customers/{id}"))["data"]
    path = f"/loyalty/customers/{id}"
    history = await visit.ask(
        "GET", f"{path}/history", {"filter": direction, "before": asked.get("before", ""), "limit": PARTS}
    )
    redemptions = await visit.ask(
        "GET", f"{path}/redemptions", {"status": status, "before": asked.get("redeemed", ""), "limit": PARTS}
    )
    return visit.show(
        "wallet.html",
        customer=customer,
        wallet=(await visit.ask("GET", f"{path}/wallet"))["data"],
        history=history,
        redemptions=redemptions,
        rewards=(await visit.ask("GET", "/loyalty/reward-options", {"limit": MOST_REWARDS}))["data"],
        query={"filter": direction, "status": status},
        choices={"filter": DIRECTIONS, "status": STATUSES},
        once=token_hex(16),
        given={name: visit.given(name) for name in ("points", "reason", "direction", "reward", "failure")},
    )


@console.post("/{environment}/loyalty/{id}/points", roles=EVERYBODY, shown_by=show_wallet)
async def adjust(visit: PageRequest) -> Response:
    await adjust_points(visit)
    return go_to(visit.path(f"/loyalty/{visit.request.path_params['id']}"))


async def adjust_points(visit: PageRequest) -> None:
    """In the name of whoever is signed in; a form that is sent twice changes them once."""
    id = visit.request.path_params["id"]
    customer = (await visit.ask("GET", f"/customers/{id}"))["data"]
    given = {
        "direction": visit.given("direction"),
        "points": parse_number("points", visit.given("points")),
        "reason": visit.given("reason") or None,
        "idempotencyKey": f"console-{once}" if (once := visit.given("once")) else None,
    }
    adjustment = decode_body(encode(given), _adjustment)
    async with visit.context.database.connection() as db:
        company = await access.get_company(db, visit.company_id)
    by = visit.session.user_id
    await visit.context.database.transact(lambda tx: loyalty.adjust(tx, company, customer["id"], adjustment, by))


@console.post("/{environment}/loyalty/{id}/redeem", roles=EVERYBODY, shown_by=show_wallet)
async def redeem(visit: PageRequest) -> Response:
    """The form names the reward with its price, so that nobody pays another than they were shown."""
    id = visit.request.path_params["id"]
    reward, _, cost = visit.given("reward").partition(":")
    options = (await visit.ask("GET", "/loyalty/reward-options", {"limit": MOST_REWARDS}))["data"]
    option = next((option for option in options if option["id"] == reward), None)
    if option is None:
        raise Invalid.field("reward", "choose one of the rewards")
    body = {"rewardOptionId": reward, "rewardName": option["rewardName"], "pointsCost": cost}
    await visit.ask("POST", f"/loyalty/customers/{id}/redeem", body=body, once=visit.given("once") or None)
    return go_to(visit.path(f"/loyalty/{id}"))


@console.post("/{environment}/loyalty/{id}/redemptions/{redemption}/{ending}", roles=EVERYBODY, shown_by=show_wallet)
async def end_redemption(visit: PageRequest) -> Response:
    """Its points are spent or given back; why it failed is said with it."""
    asked = visit.request.path_params
    if asked["ending"] not in ENDINGS:
        raise Invalid.field("ending", f"must be one of {', '.join(ENDINGS)}")
    path = f"/loyalty/redemptions/{asked['redemption']}/{asked['ending']}"
    body: Any = {"reason": visit.given("failure")} if asked["ending"] == "fail" else None
    try:
        await visit.ask("POST", path, body=body)
    except Invalid as error:
        raise Invalid.field("failure", error.details[0].message if error.details else error.message) from None
    return go_to(visit.path(f"/loyalty/{asked['id']}"))
