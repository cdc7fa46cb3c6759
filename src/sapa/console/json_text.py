"""JSON as a page shows it: indented, coloured, and as a command that sends it again. Pure."""

import json
import re
import shlex
from collections.abc import Mapping
from itertools import islice

from markupsafe import Markup, escape

MAX_TOKENS = 1_500
"""Those after them are shown plain, so that the page stays small."""
_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf"(?P<name>{_STRING})(?=\s*:)|(?P<text>{_STRING})|(?P<number>-?\d[\d.eE+-]*|true|false|null)")


def indent_json(text: str) -> str:
    """As it is, if it is not JSON."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def colour_json(text: str) -> Markup:
    """Names, texts and numbers in spans of their kind."""
    parts, end = [], 0
    for token in islice(_TOKEN.finditer(text), MAX_TOKENS):
        kind = token.lastgroup
        parts += [escape(text[end : token.start()]), Markup('<span class="j-{}">{}</span>').format(kind, token[0])]
        end = token.end()
    return Markup("").join([*parts, escape(text[end:])])


def build_curl(method: str, url: str, headers: Mapping[str, str], body: str | None, *, with_key: bool = False) -> str:
    """A command for a shell that makes the same call, with the API key that the shell has if it needs one."""
    lines = [f"curl -X {method} {shlex.quote(url)}"]
    lines += ['-H "x-api-key: $SAPA_API_KEY"'] if with_key else []
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    lines += [f"--data-raw {shlex.quote(body)}"] if body else []
    return " \\\n  ".join(lines)
