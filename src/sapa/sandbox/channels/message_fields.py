"""Reads the fields of a message as WhatsApp does; what is wrong is refused in its words."""

from typing import Any, NoReturn

from sapa.sandbox.channels import refusals
from sapa.sandbox.channels.graph_errors import GraphRefusal

Json = dict[str, Any]


class WrongMessage(Exception):
    def __init__(self, refusal: GraphRefusal) -> None:
        self.refusal = refusal


def refuse(code: int, details: str | None = None) -> NoReturn:
    raise WrongMessage(refusals.build_error(code, details))


def invalid(message: str) -> NoReturn:
    """The general error for a field that cannot be read; it has no details."""
    raise WrongMessage(GraphRefusal(code=100, message=message))


def require(value: Any, field: str) -> None:
    if value is None or value in ("", [], {}):
        refuse(131008, f"{field} is required")


def get_object(parent: Json, name: str) -> Json:
    value = parent.get(name)
    if value is None:
        refuse(131008, f"{name} is required")
    if not isinstance(value, dict):
        invalid(f"Param {name} must be a JSON object.")
    return value


def get_text(parent: Json, place: str, name: str, most: int) -> str:
    """A text of the parent, whose name is `place`."""
    value = parent.get(name)
    param = f"{place}['{name}']" if place else name
    if value is None:
        invalid(f"Param {param} is required.")
    if not isinstance(value, str):
        invalid(f"Param {param} must be a string.")
    check_length(place, name, value, most)
    return value


def check_length(place: str, name: str, value: Any, most: int) -> None:
    if len(str(value)) > most:
        param = f"{place}['{name}']" if place else name
        invalid(f"Param {param} must be at most {most} characters long.")


def check_size(what: str, value: Any, least: int, most: int) -> None:
    """The length of a text in an interactive message."""
    if not isinstance(value, str) or not least <= len(value) <= most:
        refuse(131009, f"{what} length invalid. Min length: {least}, Max length: {most}")
