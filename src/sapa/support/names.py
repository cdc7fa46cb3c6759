"""Names that people give to labels, teams and the like."""

from sapa.http.errors import Invalid


def clean_name(name: str, field: str = "name") -> str:
    """Without blanks around it or several in a row. Raises Invalid if nothing is left."""
    cleaned = " ".join(name.split())
    if not cleaned or "\0" in cleaned:
        raise Invalid.field(field, "must not be blank or contain a NUL character")
    return cleaned
