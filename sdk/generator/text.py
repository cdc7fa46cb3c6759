"""What the writers of all languages share: names and paragraphs."""

import re
import textwrap

ERRORS_BY_STATUS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    413: "PayloadTooLarge",
    415: "UnsupportedMediaType",
    429: "TooManyRequests",
}
"""The class of each status; all from 500 on are a ServerError."""

_UPPER = re.compile(r"(?<=[a-z0-9])([A-Z])")


def snake(name: str) -> str:
    """`first_name` for `firstName`."""
    return _UPPER.sub(r"_\1", name).lower()


def camel(name: str) -> str:
    """`listErrors` for `list_errors`."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def pascal(name: str) -> str:
    """`StoreLocations` for `store_locations`, `CustomerExists` for `CUSTOMER_EXISTS`, `OrderCreated` for
    `order.created`."""
    return "".join(word.title() for word in re.split(r"[._]", name))


def error_parent(status: int) -> str:
    return "ServerError" if status >= 500 else ERRORS_BY_STATUS[status]


def wrap(text: str, width: int) -> list[str]:
    """Paragraphs as lines of this width; each item of a list begins a new one."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        items = re.split(r"\n(?=- )", paragraph)
        indent = "  " if items[0].startswith("- ") else ""
        lines += [""] if lines else []
        for item in items:
            lines += textwrap.wrap(item, width, break_long_words=False, subsequent_indent=indent)
    return lines
