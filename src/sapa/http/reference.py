"""placeholder"""

from sapa.http.openapi import Document


def render_reference(document: Document) -> str:
    return ""
