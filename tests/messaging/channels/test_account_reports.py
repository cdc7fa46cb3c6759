"""What WhatsApp reports on accounts and prices: callbacks, and the fields of a number."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sapa.messaging.channels.abilities import AccountRatings
from sapa.messaging.channels.account_reports import NO_LIMIT, AccountReport, AccountWarning
from sapa.messaging.channels.interface import BadAccount, Item, ReportedPricing, Source, StatusReport
from sapa.messaging.channels.registry import CHANNELS
from sapa.outbound.client import Client
from tests.messaging.channels.accounts import ACCOUNTS, TOKEN, build_connection
from tests.messaging.channels.peer import Peer

AT = datetime(2026, 3, 1, 2, 3, 4, tzinfo=UTC)
SOURCES = [Source.MSGAPP_CLOUD, Source.MSGAPP_COEX]
REGULAR = {"billable": True, "pricing_model": "PMP", "type": "regular", "category": "utility"}


def read(field: str, value: Any, owner: str = "3344", **entry: Any) -> list[Item]:
    change = {"field": field, "value": value}
    body = {"entry": [{"id": owner, "time": int(AT.timestamp()), "changes": [change], **entry}]}
    items = [list(CHANNELS[source].read_callback(ACCOUNTS[source], json.dumps(body).encode())) for source in SOURCES]
    assert items[0] == items[1]
    return items[0]


def read_status(**parts: Any) -> ReportedPricing | None:
    status = {"id": "wamid.1", "status": "delivered", "timestamp": str(int(AT.timestamp())), **parts}
    value = {"metadata": {"phone_number_id": "1122"}, "statuses": [status]}
    (item,) = read("messages", value)
    assert isinstance(item, StatusReport)
    return item.pricing


@pytest.mark.parametrize(
    ("pricing", "expected"),
    [
        (None, None),
        ("free", None),
        ({}, None),
        ({"billable": True}, None),
        (REGULAR, ReportedPricing("utility", "regular", True, "ID")),
        (REGULAR | {"category": "MARKETING_LITE"}, ReportedPricing("marketing_lite", "regular", True, "ID")),
        (
            {"billable": True, "pricing_model": "CBP", "category": "service"},
            ReportedPricing("service", None, True, "ID"),
        ),
        ({"type": "regular", "category": "service"}, ReportedPricing("service", "regular", True, "ID")),
        (
            {"type": "free_customer_service", "category": "utility"},
            ReportedPricing("utility", "free_customer_service", False, "ID"),
        ),
        (
            {"billable": False, "type": "free_entry_point", "category": "referral_conversion"},
            ReportedPricing("referral_conversion", "free_entry_point", False, "ID"),
        ),
        (REGULAR | {"billable": "yes"}, ReportedPricing("utility", "regular", True, "ID")),
    ],
)
def test_the_pricing_of_a_status(pricing: Any, expected: ReportedPricing | None) -> None:
    assert read_status(recipient_id="628123456789", pricing=pricing) == expected


@pytest.mark.parametrize(
    ("recipient", "country"),
    [
        ({"recipient_id": "628123456789"}, "ID"),
        ({"recipient_id": "14165550123"}, "CA"),
        ({"recipient_id": "12015550123"}, "US"),
        ({"recipient_id": "77011234567"}, "KZ"),
        ({"recipient_user_id": "ID.13491208655302741918"}, "ID"),
        ({"recipient_id": "628123456789", "recipient_user_id": "US.1"}, "ID"),
        ({"recipient_user_id": "ZZ.1"}, None),
        ({"recipient_id": "1"}, None),
        ({}, None),
    ],
)
def test_the_country_is_the_recipients(recipient: dict[str, str], country: str | None) -> None:
    pricing = read_status(pricing=REGULAR, **recipient)
    assert pricing is not None
    assert pricing.country == country


OURS = {"display_phone_number": "6281100001111"}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (
            "phone_number_quality_update",
            {**OURS, "event": "THROUGHPUT_UPGRADE", "current_limit": "TIER_UNLIMITED"},
            AccountReport(AT, throughput="HIGH"),
        ),
        (
            "phone_number_quality_update",
            {**OURS, "event": "UPGRADE", "old_limit": "TIER_250", "current_limit": "TIER_2K"},
            AccountReport(AT, messaging_limit=2_000),
        ),
        (
            "phone_number_quality_update",
            {**OURS, "event": "DOWNGRADE", "max_daily_conversations_per_business": "TIER_250"},
            AccountReport(AT, messaging_limit=250),
        ),
        ("phone_number_quality_update", {**OURS, "event": "FLAGGED"}, AccountReport(AT)),
        (
            "business_capability_update",
            {"max_daily_conversations_per_business": 2_000, "max_phone_numbers_per_waba": 25},
            AccountReport(AT, messaging_limit=2_000),
        ),
        (
            "business_capability_update",
            {"max_daily_conversation_per_phone": -1, "max_phone_numbers_per_business": 2},
            AccountReport(AT, messaging_limit=NO_LIMIT),
        ),
        (
            "business_capability_update",
            {"max_daily_conversations_per_business": "TIER_UNLIMITED"},
            AccountReport(AT, messaging_limit=NO_LIMIT),
        ),
        ("business_capability_update", {"max_daily_conversations_per_business": "TIER_NOT_SET"}, AccountReport(AT)),
        (
            "account_update",
            {"event": "ACCOUNT_VIOLATION", "violation_info": {"violation_type": "SPAM"}},
            AccountReport(AT, warnings=[AccountWarning("ACCOUNT_VIOLATION", "warning", "SPAM")]),
        ),
        (
            "account_update",
            {
                "event": "ACCOUNT_RESTRICTION",
                "restriction_info": [
                    {"restriction_type": "RESTRICTED_BIZ_INITIATED_MESSAGING", "expiration": int(AT.timestamp())},
                    {"restriction_type": "RESTRICTED_UTILITY_TEMPLATES"},
                ],
            },
            AccountReport(
                AT,
                warnings=[
                    AccountWarning(
                        "RESTRICTED_BIZ_INITIATED_MESSAGING", "critical", "RESTRICTED_BIZ_INITIATED_MESSAGING", AT
                    ),
                    AccountWarning("RESTRICTED_UTILITY_TEMPLATES", "critical", "RESTRICTED_UTILITY_TEMPLATES"),
                ],
            ),
        ),
        (
            "account_update",
            {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE", "waba_ban_date": "April 1, 2026"}},
            AccountReport(AT, warnings=[AccountWarning("DISABLED_UPDATE", "critical", "DISABLE, April 1, 2026")]),
        ),
        (
            "account_update",
            {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": ["REINSTATE"]}},
            AccountReport(AT, warnings=[AccountWarning("DISABLED_UPDATE", "info", "REINSTATE", is_over=True)]),
        ),
        (
            "account_update",
            {"event": "ACCOUNT_RECONNECTED"},
            AccountReport(
                AT, warnings=[AccountWarning("ACCOUNT_OFFBOARDED", "info", "ACCOUNT_RECONNECTED", is_over=True)]
            ),
        ),
        (
            "account_update",
            {"event": "PARTNER_REMOVED", "disconnection_info": {"reason": "USER_INITIATED"}},
            AccountReport(AT, warnings=[AccountWarning("PARTNER_REMOVED", "critical", "USER_INITIATED")]),
        ),
        (
            "account_update",
            {"event": "SOMETHING_NEW"},
            AccountReport(AT, warnings=[AccountWarning("SOMETHING_NEW", "info", "SOMETHING_NEW")]),
        ),
        (
            "account_alerts",
            {
                "entity_type": "BUSINESS",
                "entity_id": "1",
                "alert_info": {
                    "alert_severity": "CRITICAL",
                    "alert_status": "ACTIVE",
                    "alert_type": "OBA_REJECTED",
                    "alert_description": "Apply again.",
                },
            },
            AccountReport(AT, warnings=[AccountWarning("OBA_REJECTED", "critical", "Apply again.")]),
        ),
        (
            "account_alerts",
            {"alert_info": {"alert_status": "RESOLVED", "alert_type": "OBA_REJECTED"}},
            AccountReport(AT, warnings=[AccountWarning("OBA_REJECTED", "info", "RESOLVED", is_over=True)]),
        ),
        (
            "account_review_update",
            {"decision": "REJECTED"},
            AccountReport(AT, warnings=[AccountWarning("ACCOUNT_REVIEW", "warning", "REJECTED")]),
        ),
        (
            "phone_number_name_update",
            {**OURS, "decision": "REJECTED", "requested_verified_name": "Kopi", "rejection_reason": "NAME_TOO_GENERIC"},
            AccountReport(AT, warnings=[AccountWarning("DISPLAY_NAME", "warning", "REJECTED, Kopi, NAME_TOO_GENERIC")]),
        ),
        (
            "phone_number_name_update",
            {**OURS, "decision": "APPROVED", "rejection_reason": "NONE"},
            AccountReport(AT, warnings=[AccountWarning("DISPLAY_NAME", "info", "APPROVED", is_over=True)]),
        ),
    ],
)
def test_reports_on_an_account(field: str, value: Any, expected: AccountReport) -> None:
    assert read(field, value) == [expected]


@pytest.mark.parametrize("field", ["phone_number_quality_update", "account_update", "account_alerts"])
@pytest.mark.parametrize("value", [None, [], "x", {"event": 7}, {"event": {}}, {"alert_info": []}, {"event": ""}])
def test_malformed_reports_are_no_errors(field: str, value: Any) -> None:
    assert all(isinstance(item, AccountReport) for item in read(field, value))


def test_reports_on_others_are_skipped() -> None:
    assert read("account_update", {"event": "ACCOUNT_DELETED"}, owner="9999") == []
    other = {"display_phone_number": "6281199999999", "event": "THROUGHPUT_UPGRADE"}
    assert read("phone_number_quality_update", other) == []


async def test_the_rating_of_a_number_is_read(peer: Peer, client: Client) -> None:
    peer.answers = [
        (
            200,
            {
                "id": "1122",
                "quality_rating": "YELLOW",
                "throughput": {"level": "STANDARD"},
                "whatsapp_business_manager_messaging_limit": "TIER_10K",
            },
        ),
        (200, {"id": "1122", "quality_rating": "UNKNOWN", "throughput": {"level": "NOT_APPLICABLE"}}),
        (401, {"error": {"code": 190, "message": "expired"}}),
    ]
    channel = CHANNELS[Source.MSGAPP_CLOUD]
    assert isinstance(channel, AccountRatings)
    connection = build_connection(Source.MSGAPP_CLOUD, peer.address, client)
    report = await channel.read_rating(connection)
    assert (report.quality, report.messaging_limit, report.throughput) == ("YELLOW", 10_000, "STANDARD")
    assert peer.requests[0].path == "/1122"
    assert set(peer.requests[0].query["fields"].split(",")) == {
        "quality_rating",
        "throughput",
        "whatsapp_business_manager_messaging_limit",
    }
    assert peer.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    report = await channel.read_rating(connection)
    assert (report.quality, report.messaging_limit, report.throughput) == (None, None, "NOT_APPLICABLE")
    with pytest.raises(BadAccount):
        await channel.read_rating(connection)
