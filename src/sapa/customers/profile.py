"""What is given of a customer, checked and brought into the one form that is stored. Pure: no database."""

import re
from typing import Any

import email_validator
import msgspec
from email_validator import EmailNotValidError, validate_email
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
from sapa.values.json import encode, encode_values, is_exact
from sapa.values.phones import BadPhone, parse_phone

# A shop's own mail server, a test domain: that an address is not reachable from everywhere is no reason to refuse it.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

# Most addresses are so plain that the validator, which knows every alphabet, need not be asked: letters, digits and a
# few signs, no label that could be punycode, a top-level domain of letters.
_is_plain_email = re.compile(
    r"[A-Za-z0-9_+-]{1,32}(?:\.[A-Za-z0-9_+-]{1,15}){0,2}"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9]|-(?!-)){0,40}(?<!-)\.){1,4}[A-Za-z]{2,20}",
    re.ASCII,
).fullmatch
LONGEST_PLAIN_EMAIL = 200

_read_addresses = msgspec.json.Decoder(list[Address]).decode


class Profile(Struct, frozen=True):
    """The columns of a customer that a caller decides, in the order in which they are stored."""

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
        """E-mail addresses are the same whatever their case."""
        return self.email and self.email.casefold()

    @property
    def search_text(self) -> str:
        name = f"{self.first_name or ''} {self.last_name or ''}".casefold()
        return "\n".join([" ".join(name.split()), self.email_key or "", (self.phone_number or "").lstrip("+")])


def build_profile(company: Company, given: CustomerIn) -> Profile:
    """A new customer's profile; raises Invalid naming the field that cannot be used."""
    return _reachable(
        Profile(
            external_id=_external_id(given.external_id),
            email=_email(given.email),
            phone_number=_phone_number(given.phone_number, company),
            first_name=given.first_name,
            last_name=given.last_name,
            image_url=given.image_url,
            tags=_tags(given.tags),
            addresses=_addresses(given.addresses, []),
            additional_data=_additional_data(given.additional_data),
            subscription_status=_subscriptions(given.subscription_status),
        )
    )


def profile_of(customer: Customer) -> Profile:
    """The profile that a stored customer has now."""
    fields: dict[str, Any] = {name: getattr(customer, name) for name in Profile.__struct_fields__}
    for name, value in fields.items():
        if isinstance(value, Raw):
            fields[name] = bytes(value)
    return Profile(**fields)


def revise_profile(company: Company, customer: Customer, patch: CustomerPatch) -> Profile:
    """The customer's profile with the changes made."""
    clean: dict[str, Any] = {
        "email": _email,
        "phone_number": lambda text: _phone_number(text, company),
        "tags": _tags,
        "addresses": lambda given: _addresses(given, _read_addresses(customer.addresses)),
        "additional_data": lambda given: _revised_data(given, bytes(customer.additional_data)),
        "subscription_status": _subscriptions,
    }
    changes = {
        name: clean[name](value) if name in clean else value
        for name in patch.__struct_fields__
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
    if _is_plain_email(text) and len(text) <= LONGEST_PLAIN_EMAIL:
        name, _, domain = text.partition("@")
        return f"{name}@{domain.lower()}"
    try:
        return validate_email(text.strip(), check_deliverability=False, globally_deliverable=False).normalized
    except EmailNotValidError as error:
        raise Invalid.field("email", f"must be an e-mail address, such as ayu@example.com: {error}") from None


def _phone_number(text: str | None, company: Company) -> str | None:
    if text is None:
        return None
    try:
        return parse_phone(text, company.region)
    except BadPhone as error:
        raise Invalid.field("phoneNumber", str(error)) from None


def _tags(given: list[str] | None) -> list[str]:
    """Each tag once, in the order given."""
    tags = [tag.strip() for tag in given or []]
    for place, tag in enumerate(tags):
        if not tag or "," in tag:
            raise Invalid.field(f"tags[{place}]", "must not be blank or hold a comma, which parts tags in a search")
    return list(dict.fromkeys(tags))


def _external_id(text: str | None) -> str | None:
    if text is not None and text != text.strip():
        raise Invalid.field("externalId", "must not begin or end with a blank")
    return text


def _addresses(given: list[AddressIn] | None, existing: list[Address]) -> bytes:
    """Known addresses keep their ids, found by id or by equal content; exactly one is the main address."""
    given = given or []
    mains = [place for place, address in enumerate(given) if address.main_address]
    if len(mains) > 1:
        raise Invalid.field(f"addresses[{mains[1]}].mainAddress", "is true for a second address; mark one as main")
    main = mains[0] if mains else 0
    left = {address.id: address for address in existing}
    named = [_claim_by_id(place, address, left) for place, address in enumerate(given)]
    kept = [
        _address(address, id or _claim_by_content(address, left), place == main)
        for place, (address, id) in enumerate(zip(given, named, strict=True))
    ]
    return encode(kept)


def _claim_by_id(place: int, given: AddressIn, left: dict[str, Address]) -> str | None:
    if given.id is None:
        return None
    if left.pop(given.id, None) is None:
        raise Invalid.field(
            f"addresses[{place}].id", "is not an address of this customer, or given twice; leave it out for a new one"
        )
    return given.id


def _claim_by_content(given: AddressIn, left: dict[str, Address]) -> str | None:
    content = _content(given)
    id = next((known.id for known in left.values() if _content(known) == content), None)
    left.pop(id or "", None)
    return id


def _address(given: AddressIn, id: str | None, is_main: bool) -> Address:
    return Address(id=id or ADDRESS_ID.new(), main_address=is_main, **_content(given))


def _content(address: Address | AddressIn) -> dict[str, Any]:
    names = set(Address.__struct_fields__) - {"id", "main_address"}
    return {name: getattr(address, name) for name in names}


def _additional_data(given: dict[str, str | int | float] | None) -> bytes:
    for key, value in (given or {}).items():
        if not isinstance(value, str) and not is_exact(value):
            raise Invalid.field(f"additionalData.{key}", "is too large to stay exact as a number; send it as a string")
    return encode_values(given or {})


def _revised_data(given: dict[str, str | int | float] | None, stored: bytes) -> bytes:
    """The same values in another order are no change."""
    new = _additional_data(given)
    return stored if msgspec.json.decode(new) == msgspec.json.decode(stored) else new


def _subscriptions(given: list[Subscription] | None) -> bytes:
    apps = [subscription.app for subscription in given or []]
    for place, app in enumerate(apps):
        if app in apps[:place]:
            raise Invalid.field(f"subscriptionStatus[{place}].app", f"names {app} a second time; give each app once")
    return encode(given or [])
