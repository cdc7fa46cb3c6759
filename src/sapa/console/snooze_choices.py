"""When a snoozed conversation returns or a reply is sent: the usual choices, in the reader's time zone."""

from datetime import datetime, time, timedelta

from msgspec import Struct

from sapa.console.fields import parse_instant
from sapa.console.formats import get_zone
from sapa.console.page_request import PageRequest
from sapa.http.errors import Invalid
from sapa.values.instants import format_instant

OWN_TIME = "own"
MORNING, AFTERNOON = time(9), time(16)


class SnoozeChoice(Struct, frozen=True):
    """A label and the instant that it stands for."""

    label: str
    until: str


def list_choices(page: PageRequest, now: datetime) -> list[SnoozeChoice]:
    zone = get_zone(page.time_zone)
    local = now.astimezone(zone)

    def at(days: int, clock: time) -> str:
        return format_instant(datetime.combine(local.date() + timedelta(days=days), clock, zone))

    choices = [
        SnoozeChoice("In an hour", format_instant(now + timedelta(hours=1))),
        SnoozeChoice("Tomorrow morning", at(1, MORNING)),
        SnoozeChoice("Monday morning", at(7 - local.weekday(), MORNING)),
    ]
    return choices if local.time() >= AFTERNOON else [SnoozeChoice("This afternoon", at(0, AFTERNOON)), *choices]


def read_instant(page: PageRequest, choice: str, own_field: str) -> str | None:
    """One of the choices, or the agent's own; None where none was made."""
    chosen, own = page.form_value(choice), page.form_value(own_field)
    if chosen != OWN_TIME:
        return chosen or None
    if not own:
        raise Invalid.field(own_field, "is required")
    return parse_instant(page, own)
