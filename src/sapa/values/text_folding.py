"""Texts as a search compares them: case and accents make no difference, runs of blanks are one blank."""

import unicodedata


def fold(text: str) -> str:
    """The same for `José  LESTARI` and `jose lestari`. What is stored and what is looked for both pass through here."""
    if text.isascii():
        return " ".join(text.lower().split())
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    # Folding may itself compose or decompose, so the outcome is brought into the one form again.
    return " ".join(unicodedata.normalize("NFKC", plain.casefold()).split())
