"""Confirmations: people who unsubscribe or subscribe again by a word get one reply."""

from msgspec import Struct

from sapa.messaging.consents.types import ConsentStatus


class DueConfirmation(Struct, frozen=True):
    """A confirmation that the worker has to send now."""

    company_id: int
    message_id: str
    is_abandoned: bool
    """Its worker died while it sent it."""


class ClaimedConfirmation(Struct, frozen=True):
    """Where the word came from, and what it did."""

    connection_id: str
    source: str
    identity: str
    status: ConsentStatus
