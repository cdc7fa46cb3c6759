"""Simulated people. On WhatsApp each has a number, and a user id that the number can be read from."""

from datetime import datetime

import phonenumbers

from sapa.db.pool import Database, Tx
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import queries

UNKNOWN_REGION = "ZZ"
RETENTION_DAYS = 30


def build_user_id(number: str) -> str:
    """The business-scoped id of a person, such as ID.628123456789: the country, a dot, and their number."""
    digits = number.removeprefix("+")
    try:
        region = phonenumbers.region_code_for_number(phonenumbers.parse(f"+{digits}"))
    except phonenumbers.NumberParseException:
        region = None
    return f"{region if region and region.isalpha() else UNKNOWN_REGION}.{digits}"


def get_number(person: str) -> str:
    """The digits of a number, or of the number that a user id was built from; any other name as it is."""
    digits = person.rpartition(".")[2].removeprefix("+")
    is_built = "." not in person or build_user_id(digits) == person
    return digits if digits.isdigit() and is_built else person


def is_user_id(name: str) -> bool:
    return not name.removeprefix("+").isdigit()


async def record_inbound(tx: Tx, company_id: int, source: Source, person: str, at: datetime) -> None:
    """A person writes, which opens their reply window."""
    await queries.record_person(tx, company_id, source, get_number(person), at)


async def purge_old(database: Database) -> None:
    async with database.connection() as db:
        await queries.purge_people(db, RETENTION_DAYS)
