"""Webhooks: events on their way to receivers. A receiver in Python checks them with `verify`, free of all the rest."""

from sapa.webhooks.receiver import VerificationError, verify

__all__ = ["VerificationError", "verify"]
