"""Loyalty: wallets, ledgers, redemptions, and the ledger check."""

from typing import Any

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.fields import parse_count, show_at
from sapa.console.listing import read_list
from sapa.console.member_names import read_member_names
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to
from sapa.db.pool import Tx
from sapa.http.bodies import build_decoder, decode_body
from sapa.http.errors import Invalid
from sapa.loyalty import actions as loyalty
from sapa.loyalty import adjust as adjustments
from sapa.loyalty.reconciliation import actions as reconciliation
from sapa.loyalty.types import AdjustmentIn, InsufficientPoints, WalletFull
from sapa.values.json import encode

DIRECTIONS = ("points_added", "points_deducted")
STATUSES = ("reserved", "committed", "released", "expired", "failed")
PARTS = "20"
MAX_REWARDS = "100"
ENDINGS = ("commit", "release", "fail")
_adjustment = build_decoder(AdjustmentIn)


@console.get("/{environment}/loyalty", roles=EVERYBODY)
async def list_wallets(page: PageRequest) -> Response:
    listing = await read_list(page, "/customers")
    ids = [customer["id"] for customer in listing["items"]]
    async with page.context.database.connection() as db:
        wallets = {wallet.customer_id: wallet for wallet in await loyalty.list_wallets(db, page.company_id, ids)}
        check = await reconciliation.find_check(db, page.company_id)
    return page.show("loyalty.html", wallets=wallets, check=check, **listing)


@console.get("/{environment}/loyalty/check", roles=DEVELOPERS)
async def check_ledger(page: PageRequest) -> Response:
    result = (await page.call("GET", "/loyalty/reconciliation"))["data"]
    return page.show("loyalty_check.html", result=result)


@console.get("/{environment}/loyalty/{id}", roles=EVERYBODY)
async def show_wallet(page: PageRequest) -> Response:
    id, params = page.request.path_params["id"], page.request.query_params
    direction, status = params.get("filter", ""), params.get("status", "")
    customer = (await page.call("GET", f"/customers/{id}"))["data"]
    path = f"/loyalty/customers/{id}"
    history = await page.call(
        "GET", f"{path}/history", {"filter": direction, "before": params.get("before", ""), "limit": PARTS}
    )
    redemptions = await page.call(
        "GET", f"{path}/redemptions", {"status": status, "before": params.get("redeemed", ""), "limit": PARTS}
    )
    return page.show(
        "wallet.html",
        customer=customer,
        authors=await read_member_names(page),
        wallet=(await page.call("GET", f"{path}/wallet"))["data"],
        history=history,
        redemptions=redemptions,
        rewards=(await page.call("GET", "/loyalty/reward-options", {"limit": MAX_REWARDS}))["data"],
        query={"filter": direction, "status": status},
        choices={"filter": DIRECTIONS, "status": STATUSES},
        given={name: page.form_value(name) for name in ("points", "reason", "direction", "reward", "failure")},
    )


@console.post("/{environment}/loyalty/{id}/points", roles=EVERYBODY, shown_by=show_wallet, says="Points changed")
async def adjust(page: PageRequest) -> Response:
    await adjust_points(page)
    return go_to(page.path(f"/loyalty/{page.request.path_params['id']}"))


async def adjust_points(page: PageRequest) -> None:
    """In the name of the person who is signed in; a form that is sent twice counts once."""
    id = page.request.path_params["id"]
    customer = (await page.call("GET", f"/customers/{id}"))["data"]
    if not page.form_value("reason"):
        raise Invalid.field("reason", "is required")
    body = {
        "direction": page.form_value("direction"),
        "points": parse_count("points", page.form_value("points")),
        "reason": page.form_value("reason") or None,
        "idempotencyKey": f"console-{once}" if (once := page.form_value("once")) else None,
    }
    adjustment = decode_body(encode(body), _adjustment)
    async with page.context.database.connection() as db:
        company = await access.get_company(db, page.company_id)
    by = page.session.user_id
    sign = "−" if adjustment.direction == "deduct" else "+"

    async def change(tx: Tx) -> None:
        await adjustments.adjust(tx, company, customer["id"], adjustment, by)
        await page.record(tx, "points.adjusted", f"{customer['id']}: {sign}{adjustment.points}, {adjustment.reason}")

    with show_at("points", InsufficientPoints, WalletFull):
        await page.context.database.transact(change)


@console.post("/{environment}/loyalty/{id}/redeem", roles=EVERYBODY, shown_by=show_wallet, says="Reward redeemed")
async def redeem(page: PageRequest) -> Response:
    """The form carries the price it showed, so that customers pay no other."""
    id = page.request.path_params["id"]
    reward, _, cost = page.form_value("reward").partition(":")
    options = (await page.call("GET", "/loyalty/reward-options", {"limit": MAX_REWARDS}))["data"]
    option = next((option for option in options if option["id"] == reward), None)
    if option is None:
        raise Invalid.field("reward", "choose one of the rewards")
    body = {"rewardOptionId": reward, "rewardName": option["rewardName"], "pointsCost": cost}
    await page.call("POST", f"/loyalty/customers/{id}/redeem", body=body)
    return go_to(page.path(f"/loyalty/{id}"))


@console.post("/{environment}/loyalty/{id}/redemptions/{redemption}/{ending}", roles=EVERYBODY, shown_by=show_wallet)
async def end_redemption(page: PageRequest) -> Response:
    """Spends or returns its points; a failure needs a reason."""
    params = page.request.path_params
    if params["ending"] not in ENDINGS:
        raise Invalid.field("ending", f"must be one of {', '.join(ENDINGS)}")
    path = f"/loyalty/redemptions/{params['redemption']}/{params['ending']}"
    body: Any = {"reason": page.form_value("failure")} if params["ending"] == "fail" else None
    try:
        await page.call("POST", path, body=body)
    except Invalid as error:
        raise Invalid.field("failure", error.details[0].message if error.details else error.message) from None
    return go_to(page.path(f"/loyalty/{params['id']}"))
