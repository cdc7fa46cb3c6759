"""Checks what a caller sends of a customer, and normalises it for storage. Pure: no database."""

import operator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from sapa.customers.types import (
    ADDRESS_ID,
    Address,
    AddressIn,
    Customer,
    CustomerIn,
    CustomerPatch,
    CustomerUnreachable,
    Subscription,
)
from sapa.http.errors import Invalid
from sapa.values.company import Company
from sapa.values.emails import BadEmail, parse_email
from sapa.values.json import encode, encode_values, is_exact
from sapa.values.phones import BadPhone, parse_phone
from sapa.values.text_folding import fold

_read_addresses = msgspec.json.Decoder(list[Address]).decode


class Profile(Struct, frozen=True):
    """The columns of a customer that a caller sets. Every statement that writes customers follows from its fields."""

    external_id: str | None
    email: str | None
    phone_number: str | None
    first_name: str | None
    last_name: str | None
    image_url: str | None
    tags: list[str]
    addresses: bytes
    additional_data: bytes
    subscription_status: bytes

    @property
    def email_key(self) -> str | None:
        """E-mail addresses are compared without case."""
        return self.email and self.email.casefold()

    @property
    def search_text(self) -> str:
        name = fold(f"{self.first_name or ''} {self.last_name or ''}")
        return "\n".join([name, fold(self.email or ""), (self.phone_number or "").lstrip("+")])


def build_profile(company: Company, body: CustomerIn) -> Profile:
    """A new customer's profile; raises Invalid with the field that is wrong."""
    return _reachable(
        Profile(
            external_id=_external_id(body.external_id),
            email=_email(body.email),
            phone_number=_phone_number(body.phone_number, company),
            first_name=body.first_name,
            last_name=body.last_name,
            image_url=body.image_url,
            tags=_tags(body.tags),
            addresses=_addresses(body.addresses, []),
            additional_data=_additional_data(body.additional_data),
            subscription_status=_subscriptions(body.subscription_status),
        )
    )


def profile_of(customer: Customer) -> Profile:
    """The profile of a stored customer."""
    fields: dict[str, Any] = {name: getattr(customer, name) for name in Profile.__struct_fields__}
    for name, value in fields.items():
        if isinstance(value, Raw):
            fields[name] = bytes(value)
    return Profile(**fields)


def build_customer(id: str, profile: Profile, now: str) -> Customer:
    """A new customer as the database has it."""
    return Customer(
        id=id,
        external_id=profile.external_id,
        email=profile.email,
        phone_number=profile.phone_number,
        first_name=profile.first_name,
        last_name=profile.last_name,
        image_url=profile.image_url,
        tags=profile.tags,
        addresses=Raw(profile.addresses),
        additional_data=Raw(profile.additional_data),
        subscription_status=Raw(profile.subscription_status),
        created_at=now,
        updated_at=now,
    )


def revise_profile(company: Company, customer: Customer, patch: CustomerPatch) -> Profile:
    """The customer's profile with the patch applied."""
    clean: dict[str, Any] = {
        "email": _email,
        "phone_number": lambda text: _phone_number(text, company),
        "tags": _tags,
        "addresses": lambda addresses: _addresses(addresses, _read_addresses(customer.addresses)),
        "additional_data": lambda data: _revised_data(data, bytes(customer.additional_data)),
        "subscription_status": _subscriptions,
    }
    changes = {
        name: clean[name](value) if name in clean else value
        for name in CustomerPatch.__struct_fields__
        if (value := getattr(patch, name)) is not UNSET
    }
    return _reachable(msgspec.structs.replace(profile_of(customer), **changes))


def _reachable(profile: Profile) -> Profile:
    if profile.email is None and profile.phone_number is None:
        raise CustomerUnreachable
    return profile


def _email(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return parse_email(text.strip())
    except BadEmail as error:
        raise Invalid.field("email", f"must be an e-mail address, such as ayu@example.com: {error}") from None


def _phone_number(text: str | None, company: Company) -> str | None:
    if text is None:
        return None
    try:
        return parse_phone(text, company.region)
    except BadPhone as error:
        raise Invalid.field("phoneNumber", str(error)) from None


def _tags(tags: list[str] | None) -> list[str]:
    """Each tag once, in the same order."""
    tags = [tag.strip() for tag in tags or []]
    for index, tag in enumerate(tags):
        if not tag or "," in tag:
            raise Invalid.field(
                f"tags[{index}]", "must not be blank or contain a comma, which separates tags in a search"
            )
    return list(dict.fromkeys(tags))


def _external_id(text: str | None) -> str | None:
    if text is not None and text != text.strip():
        raise Invalid.field("externalId", "must not start or end with whitespace")
    return text


def _addresses(addresses: list[AddressIn] | None, existing: list[Address]) -> bytes:
    """Existing addresses keep their ids, matched by id or by equal content; exactly one is the main address."""
    if not addresses:
        return encode([])
    mains = [index for index, address in enumerate(addresses) if address.main_address]
    if len(mains) > 1:
        raise Invalid.field(
            f"addresses[{mains[1]}].mainAddress", "is true for a second address; mark only one address as main"
        )
    main = mains[0] if mains else 0
    unmatched = {address.id: address for address in existing}
    ids = [
        None if address.id is None else _match_by_id(index, address.id, unmatched)
        for index, address in enumerate(addresses)
    ]
    stored = [
        _build_address(
            ids[index] or (unmatched and _match_by_content(address, unmatched)) or ADDRESS_ID.new(),
            address,
            is_main=index == main,
        )
        for index, address in enumerate(addresses)
    ]
    return encode(stored)


def _build_address(id: str, address: AddressIn, *, is_main: bool) -> Address:
    return Address(
        id=id,
        first_name=address.first_name,
        last_name=address.last_name,
        phone=address.phone,
        address1=address.address1,
        address2=address.address2,
        city=address.city,
        province=address.province,
        country=address.country,
        zip=address.zip,
        main_address=is_main,
    )


def _match_by_id(index: int, id: str, unmatched: dict[str, Address]) -> str:
    if unmatched.pop(id, None) is None:
        raise Invalid.field(
            f"addresses[{index}].id",
            "is not an address of this customer, or is used twice; leave it out for a new address",
        )
    return id


def _match_by_content(address: AddressIn, unmatched: dict[str, Address]) -> str | None:
    content = _content(address)
    id = next((existing.id for existing in unmatched.values() if _content(existing) == content), None)
    unmatched.pop(id or "", None)
    return id


_get_content = operator.attrgetter(*(name for name in Address.__struct_fields__ if name not in {"id", "main_address"}))


def _content(address: Address | AddressIn) -> tuple[str | None, ...]:
    content: tuple[str | None, ...] = _get_content(address)
    return content


def _additional_data(data: dict[str, str | int | float] | None) -> bytes:
    for key, value in (data or {}).items():
        if not isinstance(value, str) and not is_exact(value):
            raise Invalid.field(f"additionalData.{key}", "is too large to be exact as a number; send it as a string")
    return encode_values(data or {})


def _revised_data(data: dict[str, str | int | float] | None, stored: bytes) -> bytes:
    """The same values in another order are not a change."""
    new = _additional_data(data)
    return stored if msgspec.json.decode(new) == msgspec.json.decode(stored) else new


def _subscriptions(subscriptions: list[Subscription] | None) -> bytes:
    apps = [subscription.app for subscription in subscriptions or []]
    for index, app in enumerate(apps):
        if app in apps[:index]:
            raise Invalid.field(f"subscriptionStatus[{index}].app", f"repeats {app}; send each app once")
    return encode(subscriptions or [])
