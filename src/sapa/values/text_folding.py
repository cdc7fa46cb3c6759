"""Text folding for search: ignores case and accents, and collapses blanks."""

import unicodedata


def fold(text: str) -> str:
    """The same for `José  LESTARI` and `jose lestari`. Apply it to stored text and to the search term."""
    if text.isascii():
        return " ".join(text.lower().split())
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    # Case folding may compose or decompose characters, so the result is normalised again.
    return " ".join(unicodedata.normalize("NFKC", plain.casefold()).split())
