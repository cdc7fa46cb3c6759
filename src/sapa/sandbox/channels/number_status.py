"""Simulates how WhatsApp rates, limits and warns: the fields of a number, and the callbacks of a change."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.account_reports import HIGH, NO_LIMIT
from sapa.sandbox.channels import queries
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.graph_posts import sign_post
from sapa.sandbox.channels.queries import NumberState
from sapa.sandbox.channels.simulator import Post
from sapa.sandbox.types import SandboxStatusIn, SimulatedWarning

INITIAL = NumberState("GREEN", 100_000, "STANDARD")
TIERS = {250: "TIER_250", 2_000: "TIER_2K", 10_000: "TIER_10K", 100_000: "TIER_100K", NO_LIMIT: "TIER_UNLIMITED"}
LIMITS = [limit for limit in TIERS if limit != NO_LIMIT]
RESTRICTION_DAYS = 7

Json = dict[str, Any]


async def show_number(db: Connection, account: SandboxAccount) -> Json:
    """The number's node."""
    state = await get_state(db, account)
    return {
        "id": account.public["phone_number_id"],
        "display_phone_number": account.public["phone_number"],
        "verified_name": "Sandbox",
        "name_status": "APPROVED",
        "status": "CONNECTED",
        "code_verification_status": "VERIFIED",
        "platform_type": "CLOUD_API",
        "quality_rating": state.quality,
        "throughput": {"level": state.throughput},
        "whatsapp_business_manager_messaging_limit": TIERS[state.messaging_limit],
    }


async def change(tx: Tx, account: SandboxAccount, body: SandboxStatusIn, at: datetime) -> list[Post]:
    """Stores what changes, and returns the callbacks. None of them has the quality."""
    if body.messaging_limit is not None and body.messaging_limit not in LIMITS:
        raise Invalid.field("messagingLimit", f"must be one of {', '.join(map(str, LIMITS))}")
    state = await get_state(tx, account)
    limit = NO_LIMIT if body.is_unlimited else body.messaging_limit
    changed = replace(
        state,
        quality=body.quality or state.quality,
        messaging_limit=state.messaging_limit if limit is None else limit,
        throughput=body.throughput or state.throughput,
    )
    await queries.put_number_state(tx, account.company_id, account.source, changed)
    return [_post(account, field, value, at) for field, value in _list_values(account, state, changed, body, at)]


def _list_values(
    account: SandboxAccount, before: NumberState, after: NumberState, body: SandboxStatusIn, at: datetime
) -> Iterator[tuple[str, Json]]:
    number = {"display_phone_number": account.public["phone_number"].removeprefix("+")}
    if before.quality != after.quality:
        yield "phone_number_quality_update", number | {"event": "FLAGGED" if after.quality == "RED" else "UNFLAGGED"}
    if before.messaging_limit != after.messaging_limit:
        limit = -1 if after.messaging_limit == NO_LIMIT else after.messaging_limit
        yield (
            "business_capability_update",
            {"max_daily_conversations_per_business": limit, "max_phone_numbers_per_waba": 25},
        )
    if before.throughput != after.throughput and after.throughput == HIGH:
        upgrade = {"event": "THROUGHPUT_UPGRADE", "max_daily_conversations_per_business": TIERS[NO_LIMIT]}
        yield "phone_number_quality_update", number | upgrade
    if body.warning is not None:
        yield _build_warning(account, body.warning, at)


def _build_warning(account: SandboxAccount, warning: SimulatedWarning, at: datetime) -> tuple[str, Json]:
    match warning:
        case "ACCOUNT_VIOLATION":
            return "account_update", {"event": warning, "violation_info": {"violation_type": "SPAM"}}
        case "ACCOUNT_RESTRICTION":
            ends = int((at + timedelta(days=RESTRICTION_DAYS)).timestamp())
            restriction = {"restriction_type": "RESTRICTED_BIZ_INITIATED_MESSAGING", "expiration": ends}
            return "account_update", {"event": warning, "restriction_info": [restriction]}
        case "DISABLED_UPDATE" | "REINSTATE":
            state = "DISABLE" if warning == "DISABLED_UPDATE" else warning
            banned = {"waba_ban_state": state, "waba_ban_date": f"{at:%B} {at.day}, {at.year}"}
            return "account_update", {"event": "DISABLED_UPDATE", "ban_info": banned}
    alert = {
        "alert_severity": "WARNING",
        "alert_status": "ACTIVE",
        "alert_type": warning,
        "alert_description": "Limits cannot be increased yet. Send messages of good quality for several days.",
    }
    return "account_alerts", {"entity_type": "BUSINESS", "entity_id": account.public["waba_id"], "alert_info": alert}


async def get_state(db: Connection, account: SandboxAccount) -> NumberState:
    """How the number is rated and limited now."""
    return await queries.find_number_state(db, account.company_id, account.source) or INITIAL


def _post(account: SandboxAccount, field: str, value: Json, at: datetime) -> Post:
    change = {"field": field, "value": value}
    entry = {"id": account.public["waba_id"], "time": int(at.timestamp()), "changes": [change]}
    return sign_post(account, {"object": "whatsapp_business_account", "entry": [entry]})
