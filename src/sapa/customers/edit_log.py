"""Builds the readable description of a customer's change. Pure: no database."""

from sapa.customers.profile import Profile
from sapa.http.endpoints import camel

LONGEST = 100


def build_edit_log(before: Profile, after: Profile) -> str:
    """Such as `firstName: Ayu → Ayu Putri; tags: vip → vip, new`; a nested field is only named."""
    changes = [
        _build_change(name, getattr(before, name), getattr(after, name))
        for name in before.__struct_fields__
        if getattr(before, name) != getattr(after, name)
    ]
    return "; ".join(changes)


def _build_change(name: str, before: object, after: object) -> str:
    if isinstance(after, bytes):
        return f"{camel(name)} changed"
    return f"{camel(name)}: {_format(before)} → {_format(after)}"


def _format(value: object) -> str:
    text = ", ".join(value) if isinstance(value, list) else str(value or "")
    return (text[:LONGEST] + "…" if len(text) > LONGEST else text) or "–"
