"""What WhatsApp reports on an account: limits, throughput, warnings.

No callback has the number's quality, which is read from the number itself: every report makes us ask.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from sapa.messaging.channels.account_reports import HIGH, AccountReport, AccountWarning, WarningSeverity
from sapa.messaging.channels.reading import Node, find_seconds, node, nodes, text, texts
from sapa.messaging.channels.whatsapp.people import only_digits
from sapa.messaging.channels.whatsapp.ratings import parse_limit, shorten

MAX_WARNINGS = 20
LONGEST_MESSAGE = 1_000

_SEVERITIES: Mapping[str, WarningSeverity] = {"INFORMATIONAL": "info", "WARNING": "warning", "CRITICAL": "critical"}
_EVENTS: Mapping[str, WarningSeverity] = {
    "ACCOUNT_VIOLATION": "warning",
    "ACCOUNT_RESTRICTION": "critical",
    "DISABLED_UPDATE": "critical",
    "ACCOUNT_DELETED": "critical",
    "ACCOUNT_OFFBOARDED": "critical",
    "PARTNER_REMOVED": "critical",
    "PARTNER_APP_UNINSTALLED": "critical",
}
"""How serious an event of the account is. One that is not listed is information."""
_ENDS = {"ACCOUNT_RECONNECTED": "ACCOUNT_OFFBOARDED", "PARTNER_ADDED": "PARTNER_REMOVED",
         "PARTNER_APP_INSTALLED": "PARTNER_APP_UNINSTALLED"}  # fmt: skip
"""Events that end an earlier warning."""
REINSTATED = "REINSTATE"
THROUGHPUTS = {"THROUGHPUT_UPGRADE": HIGH}


def is_of_number(account: Mapping[str, str], value: Node) -> bool:
    """A change that names a number is for that number only."""
    number = only_digits(text(value, "display_phone_number"))
    return number is None or number == only_digits(account.get("phone_number"))


def _read_number(value: Node, at: datetime) -> AccountReport:
    """`current_limit` is the older name of the limit."""
    limit = parse_limit(text(value, "max_daily_conversations_per_business") or text(value, "current_limit"))
    throughput = THROUGHPUTS.get(text(value, "event") or "")
    return AccountReport(at, messaging_limit=None if throughput else limit, throughput=throughput)


def _read_capabilities(value: Node, at: datetime) -> AccountReport:
    """`max_daily_conversation_per_phone` is the older name of the limit."""
    word = text(value, "max_daily_conversations_per_business") or text(value, "max_daily_conversation_per_phone")
    return AccountReport(at, messaging_limit=parse_limit(word))


def _read_account(value: Node, at: datetime) -> AccountReport:
    event = shorten(text(value, "event"))
    if event is None:
        return AccountReport(at)
    if event in _ENDS:
        return AccountReport(at, warnings=[_end(_ENDS[event], event)])
    states = texts(value, "ban_info", "waba_ban_state") or [text(value, "ban_info", "waba_ban_state") or ""]
    if REINSTATED in states:
        return AccountReport(at, warnings=[_end(event, REINSTATED)])
    restrictions = nodes(value, "restriction_info")[:MAX_WARNINGS]
    if restrictions:
        return AccountReport(at, warnings=[_read_restriction(event, restriction) for restriction in restrictions])
    details = [*states, text(value, "ban_info", "waba_ban_date"), *_list_words(node(value, "violation_info")),
               *_list_words(node(value, "disconnection_info"))]  # fmt: skip
    return AccountReport(at, warnings=[_warn(event, _EVENTS.get(event, "info"), details)])


def _read_restriction(event: str, restriction: Node) -> AccountWarning:
    kind = shorten(text(restriction, "restriction_type"))
    return AccountWarning(
        kind or event,
        _EVENTS.get(event, "warning"),
        _describe(event, [kind]),
        expires_at=find_seconds(restriction, "expiration"),
    )


def _read_alert(value: Node, at: datetime) -> AccountReport:
    alert = node(value, "alert_info")
    code = shorten(text(alert, "alert_type"))
    if code is None:
        return AccountReport(at)
    if (text(alert, "alert_status") or "ACTIVE").upper() != "ACTIVE":
        return AccountReport(at, warnings=[_end(code, text(alert, "alert_status") or "")])
    severity = _SEVERITIES.get((text(alert, "alert_severity") or "").upper(), "warning")
    return AccountReport(at, warnings=[_warn(code, severity, [text(alert, "alert_description")])])


def _read_review(value: Node, at: datetime) -> AccountReport:
    return _read_decision("ACCOUNT_REVIEW", value, at, [])


def _read_name(value: Node, at: datetime) -> AccountReport:
    details = [text(value, "requested_verified_name"), text(value, "rejection_reason")]
    return _read_decision("DISPLAY_NAME", value, at, details)


def _read_decision(code: str, value: Node, at: datetime, details: Sequence[str | None]) -> AccountReport:
    decision = (text(value, "decision") or "").upper()
    if decision == "APPROVED":
        return AccountReport(at, warnings=[_end(code, decision)])
    return AccountReport(at, warnings=[_warn(code, "warning", [decision, *details])] if decision else [])


def _warn(code: str, severity: WarningSeverity, details: Sequence[str | None]) -> AccountWarning:
    return AccountWarning(code, severity, _describe(code, details))


def _end(code: str, word: str) -> AccountWarning:
    return AccountWarning(code, "info", _describe(code, [word]), is_over=True)


def _describe(code: str, details: Sequence[str | None]) -> str:
    words = [word for word in details if word and word != "NONE"]
    return (", ".join(words) or code)[:LONGEST_MESSAGE]


def _list_words(value: Node) -> Sequence[str]:
    return [word for name in value if (word := text(value, name)) is not None][:MAX_WARNINGS]


ACCOUNT_FIELDS: Mapping[str, Callable[[Node, datetime], AccountReport]] = {
    "phone_number_quality_update": _read_number,
    "business_capability_update": _read_capabilities,
    "account_update": _read_account,
    "account_alerts": _read_alert,
    "account_review_update": _read_review,
    "phone_number_name_update": _read_name,
}
