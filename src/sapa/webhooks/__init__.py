"""Webhooks: events on their way to receivers. Python receivers use `verify`, which needs nothing else of Sapa."""

from sapa.webhooks.receiver import VerificationError, verify

__all__ = ["VerificationError", "verify"]
