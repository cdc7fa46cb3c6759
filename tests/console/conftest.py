"""Fixtures of an installation that may deliver to this machine."""

from tests.webhooks.conftest import client, seal, station  # noqa: F401 - fixtures
