"""The demo company, by itself: the first start needs nothing else of this room."""

DEMO_COMPANY = "Demo"
"""The name of the company that the first start creates."""
