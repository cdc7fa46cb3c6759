"""Which of a carrier's offers a shipment asks for."""

from sapa.folding import fold
from sapa.shipping.carriers.interface import Offer, Quote, Rejected, Wish


def find_offer(quote: Quote, wish: Wish) -> Offer | Rejected:
    """By its code, else by its name in any case; a refusal names what there is."""
    for offer in quote.offers:
        if wish.service_code is not None and offer.service_code == wish.service_code:
            return offer
    for offer in quote.offers:
        if wish.service_name and fold(offer.service_name) == fold(wish.service_name):
            return offer
    if quote.offers:
        names = ", ".join(offer.service_name for offer in quote.offers)
        return Rejected(
            "SERVICE_NOT_OFFERED", f"{wish.service_name or wish.service_code} is not offered; these are: {names}"
        )
    reasons = " ".join(note.text for note in quote.notes)
    return Rejected("NO_SERVICE", reasons or "Nothing is offered for this way.")
