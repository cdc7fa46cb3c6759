"""Rewards that customers redeem points for."""

from typing import Any

from starlette.responses import Response

from sapa.console.fields import gather, parse_count, parse_money, spread
from sapa.console.listing import read_list
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to

TEXTS = ("rewardName", "discountType", "discountValue", "expirationPreset", "voucherPrefix")
FIELDS = (*TEXTS, "costToRedeem", "minimumPurchaseAmount")
DISCOUNTS = ("fixed_amount", "percentage", "free_shipping")
EXPIRATIONS = ("NO_EXPIRATION", "SEVEN_DAYS", "THIRTY_DAYS", "NINETY_DAYS", "ONE_YEAR")


@console.get("/{environment}/rewards", roles=EVERYBODY)
async def list_rewards(page: PageRequest) -> Response:
    return page.show("rewards.html", **await read_list(page, "/loyalty/reward-options"))


@console.get("/{environment}/rewards/new", roles=DEVELOPERS)
async def show_new_reward(page: PageRequest) -> Response:
    return _show_form(page, None, {name: page.form_value(name) for name in FIELDS}, None)


@console.post("/{environment}/rewards", roles=DEVELOPERS, shown_by=show_new_reward, says="Reward created")
async def create_reward(page: PageRequest) -> Response:
    await page.call(
        "POST",
        "/loyalty/reward-options",
        body=_build_body(page),
        noted=("reward.created", page.form_value("rewardName")),
    )
    return go_to(page.path("/rewards"))


@console.get("/{environment}/rewards/{id}", roles=EVERYBODY)
async def show_reward(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    reward = (await page.call("GET", f"/loyalty/reward-options/{id}"))["data"]
    listed = page.request.query_params.get("page", "")
    redeemers = await page.call("GET", f"/loyalty/rewards/{id}/redeemers", {"page": listed, "limit": "25"})
    stored = spread(reward, FIELDS) | {"minimumPurchaseAmount": _show_minimum(page, reward)}
    values = {name: page.form_value(name) for name in FIELDS} if page.form else stored
    return _show_form(page, reward, values, redeemers)


@console.post("/{environment}/rewards/{id}", roles=DEVELOPERS, shown_by=show_reward, says="Saved")
async def change_reward(page: PageRequest) -> Response:
    path = f"/loyalty/reward-options/{page.request.path_params['id']}"
    await page.call("PUT", path, body=_build_body(page), noted=("reward.changed", page.form_value("rewardName")))
    return go_to(page.path("/rewards"))


@console.post("/{environment}/rewards/{id}/delete", roles=DEVELOPERS, says="Reward stopped")
async def delete_reward(page: PageRequest) -> Response:
    """It can no longer be redeemed; past redemptions stay."""
    path = f"/loyalty/reward-options/{page.request.path_params['id']}"
    reward = (await page.call("GET", path))["data"]
    await page.call("DELETE", path, noted=("reward.deleted", reward["rewardName"]))
    return go_to(page.path("/rewards"))


def _show_form(
    page: PageRequest, reward: dict[str, Any] | None, values: dict[str, str], redeemers: dict[str, Any] | None
) -> Response:
    return page.show(
        "reward.html",
        reward=reward,
        values=values,
        redeemers=redeemers,
        discounts=DISCOUNTS,
        expirations=EXPIRATIONS,
        query={},
    )


def _show_minimum(page: PageRequest, reward: dict[str, Any]) -> str:
    minimum = reward["minimumPurchaseAmount"]
    return "" if minimum is None else page.formats.number(minimum)


def _build_body(page: PageRequest) -> dict[str, Any]:
    """Free shipping has no value, whatever the field holds."""
    body = gather(page, TEXTS, amounts=["minimumPurchaseAmount"]) | {
        "rewardName": page.form_value("rewardName"),
        "costToRedeem": parse_count("costToRedeem", page.form_value("costToRedeem")) or 0,
        "expirationPreset": page.form_value("expirationPreset") or "NO_EXPIRATION",
    }
    return body | {"discountValue": _parse_discount(page, body["discountType"])}


def _parse_discount(page: PageRequest, kind: str | None) -> str | None:
    text = page.form_value("discountValue")
    if kind == "free_shipping" or not text:
        return None
    amount = parse_money(page, "discountValue") if kind == "fixed_amount" else text.rstrip("% ").replace(",", ".")
    return str(amount)
