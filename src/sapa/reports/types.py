"""Reports: their window and their figures."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal

from msgspec import Struct

from sapa.http.errors import Invalid

Step = Literal["day", "week", "month"]

PRESETS = {"7": 7, "30": 30, "90": 90, "365": 365}
"""Windows that end today, by number of days."""
DEFAULT_PRESET = "30"
MAX_DAYS_BY_DAY = 62
MAX_DAYS_BY_WEEK = 370
MAX_DAYS = 5 * 366


class DayRange(Struct, frozen=True):
    """Whole days, the first and the last included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def step(self) -> Step:
        """The period of one point of a chart; few enough points to read."""
        if self.days <= MAX_DAYS_BY_DAY:
            return "day"
        return "week" if self.days <= MAX_DAYS_BY_WEEK else "month"

    @property
    def steps(self) -> list[str]:
        """The first day of every step; the first may be before the window."""
        day, steps = _first_day(self.first, self.step), []
        while day <= self.last:
            steps.append(day.isoformat())
            day = _next_step(day, self.step)
        return steps


class ReportWindow(DayRange, frozen=True):
    """Whole days of the company's time zone."""

    time_zone: str
    instants: list[datetime]
    """When each step begins, within the window, and when the last one ends."""

    @property
    def start(self) -> datetime:
        return self.instants[0]

    @property
    def end(self) -> datetime:
        """The first instant after the window."""
        return self.instants[-1]

    @property
    def dates(self) -> list[date]:
        """The days on which the instants fall, at midnight."""
        return [*(max(date.fromisoformat(step), self.first) for step in self.steps), self.last + timedelta(days=1)]


class MessageStep(Struct, frozen=True):
    """Messages of one step, by status reached."""

    step: int
    """From 1."""
    sent: int
    delivered: int
    read: int
    replied: int
    failed: int


class SalesStep(Struct, frozen=True):
    """What was sold in one step, by the time of the orders, in one currency."""

    step: int
    """From 1; 0 for a sum of steps."""
    currency: str
    orders: int
    cancelled_orders: int
    """Cancelled, or refunded as a whole."""
    gross: Decimal
    """The lines at their prices."""
    discounts: Decimal
    cancelled: Decimal
    """What the goods of such orders cost, as far as it was not refunded."""
    refunded: Decimal
    """What refunds took off the goods."""
    shipping: Decimal
    fees: Decimal
    tax: Decimal
    """Taxes that the prices do not include."""

    @property
    def net(self) -> Decimal:
        """Net sales."""
        return self.gross - self.discounts - self.cancelled - self.refunded

    @property
    def total(self) -> Decimal:
        return self.net + self.shipping + self.fees + self.tax


class DaySales(Struct, frozen=True):
    """What was sold on one day, in one currency."""

    day: str
    currency: str
    orders: int
    net: Decimal
    """Net sales."""
    orders_so_far: int
    """Until this time of the day."""
    net_so_far: Decimal
    starts_at: datetime
    ends_at: datetime
    this_hour: datetime
    """This time of the day, on that day."""


class MoneyStep(Struct, frozen=True):
    """What was paid and refunded in one step, by the time of the payments and refunds, in one currency."""

    step: int
    """From 1; 0 for a sum of steps."""
    currency: str
    payments: int
    paid: Decimal
    refunds: int
    refunded: Decimal

    @property
    def net(self) -> Decimal:
        return self.paid - self.refunded


class OrderTransaction(Struct, frozen=True):
    """A payment or a refund, and its order."""

    id: str
    order_id: str
    order_number: str
    kind: Literal["payment", "refund"]
    amount: Decimal
    currency: str
    method: str | None
    occurred_at: str


class EndpointHour(Struct, frozen=True):
    """Attempts to deliver to a webhook endpoint that began in one hour, and how long its answers took."""

    hour: int | None
    """From the start of the window; None for the whole window."""
    delivered: int
    failed: int
    median: int | None
    """In milliseconds, like the next."""
    slow: int | None
    """95 of 100 answers were quicker."""


class EndpointHealth(Struct, frozen=True):
    """Recent deliveries of a webhook endpoint."""

    id: str
    url: str
    status: str
    attempts: int
    """The latest of the window, up to a limit."""
    delivered: int
    failed: int
    milliseconds: int | None
    """The average response time."""
    last_at: str | None
    waiting: int
    """Deliveries in the queue, up to a limit."""


class ShipmentState(Struct, frozen=True):
    """Shipments of the window that have a state now."""

    state: str
    shipments: int


class Overview(Struct, frozen=True):
    """The figures of a company's window."""

    window: ReportWindow
    currency: str
    messages: list[MessageStep]
    sales: list[SalesStep]
    """In the report's currency."""
    sales_totals: list[SalesStep]
    """Of the whole window, by currency; the report's own first."""
    money: list[MoneyStep]
    money_totals: list[MoneyStep]
    endpoints: list[EndpointHealth]
    shipments: list[ShipmentState]


def parse_window(today: date, preset: str, first: str, last: str) -> DayRange:
    """The requested days, or a preset; raises Invalid with the field that is wrong."""
    if not first and not last:
        days = PRESETS.get(preset or DEFAULT_PRESET)
        if days is None:
            raise Invalid.field("days", f"must be one of {', '.join(PRESETS)}")
        return DayRange(today - timedelta(days=days - 1), today)
    end = _parse_day("to", last) if last else today
    start = _parse_day("from", first) if first else end - timedelta(days=PRESETS[DEFAULT_PRESET] - 1)
    if start > end:
        raise Invalid.field("from", "must not be after the last day")
    window = DayRange(start, end)
    if window.days > MAX_DAYS:
        raise Invalid.field("from", f"must be at most {MAX_DAYS} days before the last day")
    return window


def _parse_day(field: str, text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid.field(field, "must be a date, such as 2026-01-31") from None
    if not 2000 <= day.year <= 2100:
        raise Invalid.field(field, "must be a date from 2000 to 2100")
    return day


def _first_day(day: date, step: Step) -> date:
    if step == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if step == "month" else day


def _next_step(day: date, step: Step) -> date:
    if step == "month":
        return (day + timedelta(days=31)).replace(day=1)
    return day + timedelta(days=7 if step == "week" else 1)


class SalesSum(Struct, frozen=True):
    """What was sold in a window, in one currency."""

    orders: int
    net: Decimal


class PeriodTotals(Struct, frozen=True):
    """The main figures of a window, in one currency."""

    sent: int
    orders: int
    net_sales: Decimal
    net_money: Decimal
    shipments: int


class ProductSales(Struct, frozen=True):
    """What was sold of one article, in one currency."""

    name: str
    orders: int
    units: int
    refunded_units: int
    charged: Decimal


class ArticleOrder(Struct, frozen=True):
    """An order, and what it has of one article."""

    id: str
    order_number: str
    created_at: str
    status: str
    units: int
    refunded_units: int
    charged: Decimal
    total: int
    """How many such orders there are."""


class ReportConversation(Struct, frozen=True):
    """A conversation behind a figure."""

    id: str
    customer_id: str | None
    client_name: str | None
    client_number: str
    source: str
    status: str
    messages: int
    """Of the channel, or of the agent, in the window."""
    last_at: str
    total: int
    """How many such conversations there are."""


class AgentRating(Struct, frozen=True):
    """A rating behind an agent's figure, and its conversation."""

    id: str
    """The conversation's."""
    customer_id: str | None
    client_name: str | None
    client_number: str
    source: str
    score: int
    comment: str | None
    rated_at: str
    total: int
    """How many such ratings there are."""


class ChannelMessages(Struct, frozen=True):
    """The messages of one channel."""

    source: str
    is_earlier: bool
    """Of the period before."""
    received: int
    sent: int
    delivered: int
    read: int
    failed: int


class CarrierShipments(Struct, frozen=True):
    """The shipments of one carrier."""

    provider: str
    label: str
    shipments: int
    delivered: int
    problems: int
    fees: Decimal
