"""A carrier's offers, and finding the one that a shipment names."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec import Raw

from sapa.shipping.carriers.interface import (
    CarrierAway,
    Quote,
    QuoteNote,
    Rejected,
    ServiceOffer,
    ServiceRequest,
)
from sapa.shipping.carriers.reading import decode_rows
from sapa.values.text_folding import fold

Row = TypeVar("Row")


def decode_offers(courier: str, rows: Iterable[Raw], shape: type[Row]) -> tuple[list[Row], list[QuoteNote]]:
    """The readable rows of a price list, and notes about the others. Raises CarrierAway if none is readable."""
    readable, unreadable = decode_rows(rows, shape)
    return readable, list_unreadable(courier, len(readable), unreadable)


def list_unreadable(courier: str, readable: int, unreadable: int) -> list[QuoteNote]:
    """Notes about unreadable rows. Raises CarrierAway if no row is readable."""
    if unreadable and not readable:
        raise CarrierAway("it sent prices that cannot be read")
    message = (
        f"{unreadable} of its offers cannot be read and are left out. If one that you need is missing, try again later."
    )
    return [QuoteNote(courier, "unreadable", message)] if unreadable else []


def choose_offer(quote: Quote, service: ServiceRequest) -> ServiceOffer | Rejected:
    """By code, else by name ignoring case; a rejection lists the offers."""
    offer = _find_by_code(quote, service) or _find_by_name(quote, service)
    if offer is not None:
        return _find_refusal(quote, offer, service) or offer
    if quote.offers:
        names = ", ".join(offer.service_name for offer in quote.offers)
        return Rejected(
            "SERVICE_NOT_OFFERED", f"{service.service_name or service.service_code} is not offered. Use one of: {names}"
        )
    reasons = " ".join(note.text for note in quote.notes)
    return Rejected("NO_SERVICE", reasons or "No service is offered for this route.")


def _find_by_code(quote: Quote, service: ServiceRequest) -> ServiceOffer | None:
    return next((offer for offer in quote.offers if offer.service_code == service.service_code), None)


def _find_by_name(quote: Quote, service: ServiceRequest) -> ServiceOffer | None:
    name = fold(service.service_name or "")
    return next((offer for offer in quote.offers if name and fold(offer.service_name) == name), None)


def _find_refusal(quote: Quote, offer: ServiceOffer, service: ServiceRequest) -> Rejected | None:
    if service.package_handover not in offer.package_handover:
        options = " or ".join(offer.package_handover)
        return Rejected(
            "HANDOVER_NOT_OFFERED", f"{offer.service_name} does not offer {service.package_handover}. Use {options}"
        )
    amount = service.cod_amount
    if amount is not None and not offer.collects(amount):
        names = ", ".join(other.service_name for other in quote.offers if other.collects(amount))
        advice = f"Use one of: {names}" if names else "No service for this route does"
        code = "COD_OUT_OF_RANGE" if offer.cod else "COD_NOT_OFFERED"
        return Rejected(code, f"{explain_cash(offer)}. {advice}")
    return None


def explain_cash(offer: ServiceOffer) -> str:
    """What a service collects on delivery, for a message."""
    if not offer.cod:
        return f"{offer.service_name} does not collect cash on delivery"
    if offer.cod_limits is None:
        return f"{offer.service_name} collects cash on delivery"
    least, most = offer.cod_limits.least, offer.cod_limits.most
    return f"{offer.service_name} collects {least:,f} to {most:,f} {offer.currency} on delivery"
