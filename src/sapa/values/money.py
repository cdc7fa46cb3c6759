"""Money: exact decimals, at most the currency's digits, in their shortest form."""

from decimal import Context, Decimal
from typing import Annotated

from msgspec import Meta

MAX_DIGITS = 15
"""Significant digits that a JSON number carries exactly through any reader."""

_TWO_DIGITS = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW "
    "CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR "
    "ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV "
    "MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD "
    "SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
)
DIGITS = {
    **dict.fromkeys(_TWO_DIGITS.split(), 2),
    **dict.fromkeys("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}
"""Decimal places of each ISO 4217 currency."""

Currency = Annotated[str, Meta(pattern="^[A-Z]{3}$", examples=["IDR"], description="An ISO 4217 code.")]
Amount = Annotated[
    Decimal, Meta(examples=[150000], description="In major units, with at most the currency's decimal places.")
]

NOTHING = Decimal(0)


class BadMoney(ValueError):
    """An amount or a currency that cannot be used; the text says how to fix it."""


def parse_currency(code: str) -> str:
    if code not in DIGITS:
        raise BadMoney("must be an ISO 4217 currency code, such as IDR")
    return code


def parse_amount(amount: Decimal, currency: str) -> Decimal:
    """A price or total in its shortest form; raises if it is negative or has more decimal places than the currency."""
    if not amount.is_finite() or amount < 0:
        raise BadMoney("must be a number, 0 or more")
    # Checked before any computation: 1e999999 is a short text and a very long number, 1e-999999999 would round to 0.
    if amount.adjusted() >= MAX_DIGITS:
        raise BadMoney(f"must have at most {MAX_DIGITS} digits")
    if amount.same_quantum(NOTHING):
        return amount or NOTHING  # a whole number, as most amounts are
    short = amount if amount and amount.adjusted() < -MAX_DIGITS else shorten(amount)
    digits = DIGITS[currency]
    if -_exponent(short) > digits:
        raise BadMoney(f"must have at most {digits} decimal places, like {currency}" if digits else
                       f"must be a whole number, because {currency} has no decimal places")  # fmt: skip
    if len(short.as_tuple().digits) > MAX_DIGITS:
        raise BadMoney(f"must have at most {MAX_DIGITS} digits")
    return short


def shorten(amount: Decimal) -> Decimal:
    """Without zeros at the end of the fraction and without an exponent: 0.30 → 0.3, 1.5E+5 → 150000."""
    if amount.same_quantum(NOTHING):
        return amount or NOTHING  # a whole number, as most amounts are; also for negative zero
    # Room for every digit of the input: Decimal's default of 28 would round away digits that must be refused.
    short = amount.normalize(Context(prec=max(28, len(amount.as_tuple().digits))))
    if not short:
        return NOTHING
    return short.quantize(Decimal(1)) if _exponent(short) > 0 else short


def _exponent(amount: Decimal) -> int:
    exponent = amount.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0
