"""How long the edge keeps its rows."""

KEPT_HOURS = 24
"""After that, an idempotency key is like one that was never used."""
