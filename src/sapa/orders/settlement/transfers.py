"""The money that a change of an order moved, by its own time. Pure: no database."""

from decimal import Decimal
from typing import Literal

from msgspec import Struct

from sapa.orders.settlement.balance import list_valid
from sapa.orders.settlement.types import OrderBalance


class Transfer(Struct, frozen=True):
    """A payment or a refund."""

    id: str
    kind: Literal["payment", "refund"]
    amount: Decimal
    method: str | None
    at: str


class Transfers(Struct, frozen=True):
    """What was paid and refunded, and the ids of payments that were voided."""

    new: list[Transfer]
    voided: list[str]

    def name_values(self) -> dict[str, object]:
        """The parameters of the statement that stores them."""
        return {
            "voided": self.voided,
            "transfer_ids": [one.id for one in self.new],
            "transfer_kinds": [one.kind for one in self.new],
            "transfer_amounts": [one.amount for one in self.new],
            "transfer_methods": [one.method for one in self.new],
            "transfer_instants": [one.at for one in self.new],
        }


def build_transfers(before: OrderBalance, after: OrderBalance) -> Transfers:
    was_valid = {payment.id for payment in list_valid(before.payments)}
    is_valid = {payment.id for payment in list_valid(after.payments)}
    payments = [
        Transfer(payment.id, "payment", payment.amount, payment.method, payment.paid_at)
        for payment in list_valid(after.payments)
        if payment.id not in was_valid
    ]
    refunds = [
        Transfer(refund.id, "refund", refund.amount, None, refund.created_at)
        for refund in after.refunds[len(before.refunds) :]
        if refund.amount
    ]
    return Transfers(payments + refunds, sorted(was_valid - is_valid))
