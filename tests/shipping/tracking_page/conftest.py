"""A real browser for the public page."""

from tests.console.conftest import browser  # noqa: F401 - a fixture
