"""The port for consent: resolves the subscriptions that a caller sends with those on record, and records changes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta, Struct

from sapa.customers.profile import Profile
from sapa.customers.types import Subscription
from sapa.db.pool import Tx
from sapa.ports import Port
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company
from sapa.values.json import encode

_read_subscriptions = msgspec.json.Decoder(list[Subscription]).decode

NONE = encode([])


class ConsentProofIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What shows later that the person made this choice."""

    text: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=2000,
                examples=["Ya, kirimi saya promo lewat WhatsApp."],
                description="The words that the person agreed to or used.",
            ),
        ]
        | None
    ) = None
    place: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=500,
                examples=["https://shop.example/checkout"],
                description="Where it happened: the URL of a form, a shop, a call.",
            ),
        ]
        | None
    ) = None
    reference: (
        Annotated[
            str, Meta(min_length=1, max_length=500, examples=["form-1042"], description="Your id of the document.")
        ]
        | None
    ) = None
    obtained_at: Annotated[datetime, Meta(tz=True, description="When it happened.")] | None = None


class SubscriptionChange(Struct, frozen=True, kw_only=True):
    """What a customer subscribed to before, and what a caller asks for."""

    customer_id: str | None
    """None for a customer who is not stored yet."""
    email_key: str | None
    phone_number: str | None
    before: Sequence[Subscription]
    after: Sequence[Subscription]
    proof: ConsentProofIn | None = None


class Consents(Protocol):
    async def has_stops(self, tx: Tx, company: Company) -> bool:
        """Whether anybody in the company unsubscribed; if not, customers without subscriptions need no resolving."""

    async def resolve(
        self, tx: Tx, company: Company, changes: Sequence[SubscriptionChange]
    ) -> Sequence[Sequence[Subscription]]:
        """What each customer subscribes to after the change: consent that a caller leaves out stays, and so does a stop
        that came from the person."""

    async def record_changes(
        self, tx: Tx, company: Company, changes: Sequence[SubscriptionChange], actor: ChangeActor
    ) -> None:
        """Records who changed which consent, in the transaction of the change."""


CONSENTS: Port[Consents] = Port("consents")


class ProfileChange(Struct, frozen=True):
    """A customer's profile, before (None for a new customer) and after a change."""

    customer_id: str | None
    before: Profile | None
    after: Profile
    proof: ConsentProofIn | None = None
    sets_subscriptions: bool = False
    """Whether the caller sent subscriptions, be they the same as before."""

    @property
    def concerns_consent(self) -> bool:
        is_changed = self.before is None or _consent_fields(self.before) != _consent_fields(self.after)
        return is_changed or self.sets_subscriptions

    @property
    def has_subscriptions(self) -> bool:
        return self.after.subscription_status != NONE or (
            self.before is not None and self.before.subscription_status != NONE
        )


async def resolve(tx: Tx, company: Company, changes: Sequence[ProfileChange]) -> list[Profile]:
    """The profiles to store: with consent that the caller left out, and without consent that the person took back."""
    concerned = {number: change for number, change in enumerate(changes) if change.concerns_consent}
    if len(concerned) > 1 and not await CONSENTS.installed.has_stops(tx, company):
        concerned = {number: change for number, change in concerned.items() if change.has_subscriptions}
    profiles = [change.after for change in changes]
    if not concerned:
        return profiles
    resolved = await CONSENTS.installed.resolve(tx, company, [_build_change(change) for change in concerned.values()])
    for number, subscriptions in zip(concerned, resolved, strict=True):
        profiles[number] = _replace_subscriptions(profiles[number], subscriptions)
    return profiles


async def record(tx: Tx, company: Company, changes: Sequence[ProfileChange], actor: ChangeActor) -> None:
    """The changes as they were stored."""
    relevant = [change for change in changes if change.proof or change.has_subscriptions]
    recorded = [change for change in map(_build_change, relevant) if change.proof or change.before != change.after]
    if recorded:
        await CONSENTS.installed.record_changes(tx, company, recorded, actor)


def read_subscriptions(profile: Profile) -> list[Subscription]:
    return _read_subscriptions(profile.subscription_status)


def _replace_subscriptions(profile: Profile, subscriptions: Sequence[Subscription]) -> Profile:
    if list(subscriptions) == read_subscriptions(profile):
        return profile
    return msgspec.structs.replace(profile, subscription_status=encode(list(subscriptions)))


def _consent_fields(profile: Profile) -> tuple[str | None, str | None, bytes]:
    return profile.email_key, profile.phone_number, profile.subscription_status


def _build_change(change: ProfileChange) -> SubscriptionChange:
    return SubscriptionChange(
        customer_id=change.customer_id,
        email_key=change.after.email_key,
        phone_number=change.after.phone_number,
        before=[] if change.before is None else read_subscriptions(change.before),
        after=read_subscriptions(change.after),
        proof=change.proof,
    )
