"""Checks what a caller sends of a reward, and normalises it for storage. Pure: no database."""

from decimal import Decimal
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from sapa.http.errors import Invalid
from sapa.loyalty.rewards.types import DiscountType, RewardOption, RewardOptionIn, RewardOptionPatch
from sapa.loyalty.types import MAX_POINTS
from sapa.values.company import Company
from sapa.values.money import BadMoney, parse_amount, shorten
from sapa.values.text_folding import fold

MAX_PERCENT = 100
PERCENT_DIGITS = 2


class RewardTerms(Struct, frozen=True, kw_only=True):
    """The fields of a reward that a caller sets."""

    reward_name: str
    cost_to_redeem: int
    discount_type: DiscountType
    discount_value: Decimal | None
    expiration_preset: str
    voucher_prefix: str | None
    minimum_purchase_amount: Decimal | None

    @property
    def search_text(self) -> str:
        return fold(self.reward_name)


def build_terms(company: Company, body: RewardOptionIn) -> RewardTerms:
    """A new reward's terms; raises Invalid with the field that is wrong."""
    return _checked(company, msgspec.structs.asdict(body))


def terms_of(option: RewardOption) -> RewardTerms:
    """The terms of a stored reward."""
    fields: dict[str, Any] = {name: getattr(option, name) for name in RewardTerms.__struct_fields__}
    fields["cost_to_redeem"] = int(option.cost_to_redeem)
    fields["discount_value"] = None if option.discount_value is None else Decimal(option.discount_value)
    return RewardTerms(**fields)


def revise_terms(company: Company, option: RewardOption, patch: RewardOptionPatch) -> RewardTerms:
    """The terms with the patch applied; a reward that becomes free shipping loses its value."""
    changes = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    if changes.get("discount_type") == "free_shipping":
        changes.setdefault("discount_value", None)
    before = {name: getattr(option, name) for name in RewardTerms.__struct_fields__}
    return _checked(company, before | changes)


def parse_cost(field: str, text: int | str) -> int:
    cost = int(text)
    if cost > MAX_POINTS:
        raise Invalid.field(field, f"must be at most {MAX_POINTS}")
    return cost


def _checked(company: Company, fields: dict[str, Any]) -> RewardTerms:
    if not fields["reward_name"].strip():
        raise Invalid.field("rewardName", "must not be blank")
    least = fields["minimum_purchase_amount"]
    fields["cost_to_redeem"] = parse_cost("costToRedeem", fields["cost_to_redeem"])
    fields["discount_value"] = _discount(company, fields["discount_type"], fields["discount_value"])
    fields["minimum_purchase_amount"] = None if least is None else _amount(company, "minimumPurchaseAmount", least)
    return RewardTerms(**fields)


def _discount(company: Company, kind: DiscountType, text: str | None) -> Decimal | None:
    value = None if text is None else Decimal(text)
    if kind == "free_shipping":
        if value:
            raise Invalid.field("discountValue", "must be null for free_shipping")
        return None
    if not value:
        raise Invalid.field("discountValue", f"must be more than 0 for {kind}")
    return _percentage(value) if kind == "percentage" else _amount(company, "discountValue", value)


def _percentage(value: Decimal) -> Decimal:
    if value > MAX_PERCENT:
        raise Invalid.field("discountValue", f"must be at most {MAX_PERCENT} for percentage")
    if value != value.quantize(Decimal(1).scaleb(-PERCENT_DIGITS)):
        raise Invalid.field("discountValue", f"must have at most {PERCENT_DIGITS} decimal places for percentage")
    return shorten(value)


def _amount(company: Company, field: str, value: Decimal) -> Decimal:
    try:
        return parse_amount(value, company.currency)
    except BadMoney as error:
        raise Invalid.field(field, str(error)) from None
