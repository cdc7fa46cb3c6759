"""How templates write values."""

from decimal import Decimal

import pytest
from markupsafe import Markup, escape

from sapa.console.rendering import escape_text


@pytest.mark.parametrize(
    "value", ["Ayu", "<b>", "Tom & 'Ayu'", 'a "b"', Markup("<b>bold</b>"), "", 3, None, Decimal("1.5")], ids=repr
)
def test_templates_escape_values_as_usual(value: object) -> None:
    assert escape_text(value) == escape(value)
