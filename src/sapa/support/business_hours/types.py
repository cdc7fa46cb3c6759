"""Business hours: when somebody is there to answer."""

from datetime import date
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from sapa.http.responses import StoredJson, Timestamp
from sapa.values.enum_names import EnumName

Weekday = Annotated[
    Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"], EnumName("Weekday")
]
DAYS: tuple[Weekday, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
TimeOfDay = Annotated[
    str,
    Meta(pattern="^(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00)$", examples=["09:00"], description="Hours and minutes."),
]


class OpenHours(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hours of one day of the week."""

    day: Weekday
    opens: TimeOfDay
    closes: Annotated[TimeOfDay, Meta(examples=["17:00"], description="After `opens`; 24:00 is midnight.")]


class Holiday(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A day without hours."""

    date: date
    name: Annotated[str, Meta(max_length=100, examples=["Idul Fitri"])] = ""


class BusinessHoursIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The company's business hours from now on."""

    time_zone: Annotated[
        Annotated[str, Meta(max_length=100)] | None,
        Meta(examples=["Asia/Jakarta"], description="An IANA time zone. Default: the company's."),
    ] = None
    weekly: Annotated[
        list[OpenHours],
        Meta(
            max_length=70,
            examples=[[{"day": "monday", "opens": "09:00", "closes": "17:00"}]],
            description="A day may have several hours. None at all: always open, except on holidays.",
        ),
    ]
    holidays: Annotated[list[Holiday], Meta(max_length=400, examples=[[]])] = []


class BusinessHours(Struct, frozen=True, rename="camel"):
    """The hours in which targets are counted."""

    time_zone: Annotated[str, Meta(examples=["Asia/Jakarta"])]
    weekly: Annotated[Raw, StoredJson(list[OpenHours])]
    holidays: Annotated[Raw, StoredJson(list[Holiday])]
    updated_at: Annotated[Timestamp | None, Meta(description="Null until the hours are set: always open.")]
