"""Rewards: what customers can have for their points."""

from typing import Any

from starlette.responses import Response

from sapa.console.fields import gather, parse_number, spread
from sapa.console.listing import read_list
from sapa.console.routes import (
    DEVELOPERS,
    EVERYBODY,
    PageRequest,
    console,
    go_to,
)

TEXTS = ("rewardName", "discountType", "discountValue", "expirationPreset", "voucherPrefix")
FIELDS = (*TEXTS, "costToRedeem", "minimumPurchaseAmount")
DISCOUNTS = ("fixed_amount", "percentage", "free_shipping")
EXPIRATIONS = ("NO_EXPIRATION", "SEVEN_DAYS", "THIRTY_DAYS", "NINETY_DAYS", "ONE_YEAR")


@console.get("/{environment}/rewards", roles=EVERYBODY)
async def list_rewards(visit: PageRequest) -> Response:
    return visit.show("rewards.html", **await read_list(visit, "/loyalty/reward-options"))


@console.get("/{environment}/rewards/new", roles=DEVELOPERS)
async def show_new_reward(visit: PageRequest) -> Response:
    return _show_form(visit, None, {name: visit.given(name) for name in FIELDS}, None)


@console.post("/{environment}/rewards", roles=DEVELOPERS, shown_by=show_new_reward)
async def create_reward(visit: PageRequest) -> Response:
    await visit.ask(
        "POST", "/loyalty/reward-options", body=_build_body(visit), noted=("reward.created", visit.given("rewardName"))
    )
    return go_to(visit.path("/rewards"))


@console.get("/{environment}/rewards/{id}", roles=EVERYBODY)
async def show_reward(visit: PageRequest) -> Response:
    id = visit.request.path_params["id"]
    reward = (await visit.ask("GET", f"/loyalty/reward-options/{id}"))["data"]
    page = visit.request.query_params.get("page", "")
    redeemers = await visit.ask("GET", f"/loyalty/rewards/{id}/redeemers", {"page": page, "limit": "25"})
    values = {name: visit.given(name) for name in FIELDS} if visit.form else spread(reward, FIELDS)
    return _show_form(visit, reward, values, redeemers)


@console.post("/{environment}/rewards/{id}", roles=DEVELOPERS, shown_by=show_reward)
async def change_reward(visit: PageRequest) -> Response:
    path = f"/loyalty/reward-options/{visit.request.path_params['id']}"
    await visit.ask("PUT", path, body=_build_body(visit), noted=("reward.changed", visit.given("rewardName")))
    return go_to(visit.path("/rewards"))


@console.post("/{environment}/rewards/{id}/delete", roles=DEVELOPERS)
async def delete_reward(visit: PageRequest) -> Response:
    """Nobody can redeem it any more; what was redeemed stays."""
    path = f"/loyalty/reward-options/{visit.request.path_params['id']}"
    reward = (await visit.ask("GET", path))["data"]
    await visit.ask("DELETE", path, noted=("reward.deleted", reward["rewardName"]))
    return go_to(visit.path("/rewards"))


def _show_form(
    visit: PageRequest, reward: dict[str, Any] | None, values: dict[str, str], redeemers: dict[str, Any] | None
) -> Response:
    return visit.show(
        "reward.html",
        reward=reward,
        values=values,
        redeemers=redeemers,
        discounts=DISCOUNTS,
        expirations=EXPIRATIONS,
        query={},
    )


def _build_body(visit: PageRequest) -> dict[str, Any]:
    """Free shipping has no value, whatever stood in its field."""
    body = gather(visit, TEXTS, ["minimumPurchaseAmount"]) | {
        "rewardName": visit.given("rewardName"),
        "costToRedeem": parse_number("costToRedeem", visit.given("costToRedeem")) or 0,
        "expirationPreset": visit.given("expirationPreset") or "NO_EXPIRATION",
    }
    return body | ({"discountValue": None} if body["discountType"] == "free_shipping" else {})
