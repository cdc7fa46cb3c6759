"""The scripts of simulated recipients: the recipient selects one, always the same.

Phone numbers +1 201 555 01xx are fictional. Channels with ids have `sim_<script>` instead.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

StepAction = Literal["sent", "delivered", "read", "failed", "reply", "choice"]
REPLIES = frozenset({"reply", "choice"})

COUNTED = "two of three"
"""What a script refuses that counts its messages."""


class ScriptStep(Struct, frozen=True):
    """A callback after a number of seconds."""

    after: float
    action: StepAction
    code: int = 0
    """The error code of a failure."""
    quotes: bool = True
    details: str | None = None
    """Of a failure, if its code alone does not tell."""


class Script(Struct, frozen=True):
    """The behaviour of a recipient: an immediate error, or steps."""

    steps: Sequence[ScriptStep] = ()
    refusal: int = 0
    """WhatsApp's error code; other simulators respond with the nearest error of their channel."""
    refuses: Literal["all", "templates", "free", "two of three"] = "all"
    hangs: bool = False
    """The message is accepted, but no response comes before the caller's timeout. Later steps prove the acceptance."""
    is_broken: bool = False
    """The channel responds with a server error."""
    alias: str | None = None
    """The recipient's id at the channel."""
    is_free: bool = False
    """The recipient came by an advertisement: for some days messages to them are free."""


SENT, DELIVERED, READ = ScriptStep(0, "sent"), ScriptStep(1, "delivered"), ScriptStep(2, "read")
HAPPY = Script((SENT, DELIVERED, READ))
_SHUFFLED = [ScriptStep(0, "read")] * 2 + [ScriptStep(0.5, "sent")] * 2 + [ScriptStep(1, "delivered")] * 2

SCRIPTS = {
    "happy": HAPPY,
    "unread": Script((SENT, DELIVERED)),
    "sent": Script((SENT,)),
    "read_only": Script((SENT, READ)),
    "shuffled": Script(_SHUFFLED),
    "conflict": Script((SENT, ScriptStep(1, "failed", 131026), ScriptStep(2, "delivered"))),
    "reply": Script((*HAPPY.steps, ScriptStep(3, "reply"))),
    "choice": Script((*HAPPY.steps, ScriptStep(3, "choice"))),
    "late_reply": Script((*HAPPY.steps, ScriptStep(30, "reply", quotes=False))),
    "unknown": Script(refusal=131026),
    "failed": Script((SENT, ScriptStep(1, "failed", 131047))),
    "no_template": Script(HAPPY.steps, refusal=132001, refuses="templates"),
    "wrong_params": Script(HAPPY.steps, refusal=132000, refuses="templates"),
    "rate": Script(HAPPY.steps, refusal=130429, refuses="two of three"),
    "pair_rate": Script(refusal=131056),
    "token_expired": Script(refusal=190),
    "broken": Script(is_broken=True),
    "timeout": Script([ScriptStep(12 + step.after, step.action) for step in HAPPY.steps], hangs=True),
    "capped": Script((SENT, ScriptStep(1, "failed", 131049))),
    "no_number": Script(HAPPY.steps, alias="US.12015550120"),
    "other_number": Script(HAPPY.steps, alias="12015550191"),
    "window_closed": Script(HAPPY.steps, refusal=131047, refuses="free"),
    "quota_10": HAPPY,  # refused before the channel is called
    "stopped": Script((SENT, ScriptStep(1, "failed", 131050))),
    "experiment": Script((SENT, ScriptStep(1, "failed", 130472))),
    "spam": Script(refusal=131048),
    "payment": Script((SENT, ScriptStep(1, "failed", 131042))),
    "locked": Script(refusal=131031),
    "policy": Script(refusal=368),
    "country": Script(refusal=130497),
    "file": Script((SENT, ScriptStep(1, "failed", 131053))),
    "unregistered": Script(refusal=133010),
    "no_permission": Script(refusal=10),
    "classified": Script(refusal=131064),
    "maintenance": Script(refusal=131057),
    "bounce": Script((SENT, ScriptStep(1, "failed", 550))),
    "tempfail": Script(refusal=451),
    "free_entry": Script(HAPPY.steps, is_free=True),
    "ooo": Script((SENT, ScriptStep(1, "reply"))),
}

_NUMBERS = {
    "0100": "happy", "0101": "unread", "0102": "sent", "0103": "read_only", "0104": "shuffled", "0105": "conflict",
    "0106": "reply", "0107": "choice", "0108": "late_reply", "0110": "unknown", "0111": "failed",
    "0112": "no_template", "0113": "wrong_params", "0114": "rate", "0115": "pair_rate", "0116": "token_expired",
    "0117": "broken", "0118": "timeout", "0119": "capped", "0120": "no_number", "0121": "other_number",
    "0122": "window_closed", "0130": "stopped", "0131": "experiment", "0132": "spam", "0133": "payment",
    "0134": "locked", "0135": "policy", "0136": "country", "0137": "file", "0138": "unregistered",
    "0139": "no_permission", "0140": "classified", "0141": "maintenance", "0150": "free_entry",
}  # fmt: skip

MAGIC_NUMBERS = "1201555"
MAGIC_ID = "sim_"
MAGIC_DOMAIN = "simulator.test"


def get_script(recipient: str) -> Script:
    """By number, id or e-mail address; an ordinary recipient receives and reads."""
    return SCRIPTS.get(get_script_name(recipient), HAPPY)


def get_script_name(recipient: str) -> str:
    local, _, domain = recipient.partition("@")
    if domain.lower() == MAGIC_DOMAIN:
        return local.partition("+")[0].lower()
    digits = recipient.removeprefix("+")
    if digits.startswith(MAGIC_NUMBERS):
        return _NUMBERS.get(digits.removeprefix(MAGIC_NUMBERS), "happy")
    by_alias = next((name for name, script in SCRIPTS.items() if script.alias == digits), None)
    return by_alias or (recipient.removeprefix(MAGIC_ID) if recipient.startswith(MAGIC_ID) else "happy")
