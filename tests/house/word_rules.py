"""Which words the house has given up, and where they still stand. `python -m tests.house.word_rules` counts them."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.house.source_tree import PACKAGE, SOURCE, Module

REPOSITORY = SOURCE.parents[1]

WORDS = """
    Kit kit Errand errand Chapter chapter Occasion occasion Wish wish Journey journey Surroundings surroundings Desk
    desk Sheet sheet Scene scene Doer Particulars Mishap Asker Spelled
    tidings bury lay_down bring_back take_turn mend mends mended mending whoever whomever stumble stumbles stumbled odd
    thanked
""".split()  # fmt: skip
"""Given up everywhere: in names, prose, test names and docs."""

PHRASES = ["in earnest", "that is none", "so long", "in one go", "told nothing"]

NAMES = """
    given kept told said heard moment moments happening happenings bell rung forget forgotten
    Said Told Heard Handed Made Given Wanted Spelled Shown Kept Held Known Opened Stand Sight Over
""".split()  # fmt: skip
"""Ordinary words in a sentence, and given up as names of variables, functions, classes and their parts."""

IN_SQL = [*NAMES, *"known wanted held letter at_ease asked lost gone".split()]
"""The same for names that a statement gives to rows and columns; those of the schema are stored."""

STATEMENT_FILES = ("/queries.py", "sapa/events.py", "sapa/db/listing.py", "sapa/db/due.py")

EXEMPT = (
    "src/sapa/db/migrations/",  # history
    "src/sapa/db/schema.sql",  # stored names
    "src/sapa/console/templates/",  # the console's own strings
    "src/sapa/console/words/",
)

STORED = {
    "src/sapa/cli/doctor.py": {"mend"},  # a key of `sapa doctor --json`
    "src/sapa/shipping/quotes/queries.py": {"journey"},  # a column
    "src/sapa/http/bodies.py": {"sheet"},  # the media type of workbooks
    "src/sapa/imports/tables/workbooks.py": {"sheet"},  # names of python-calamine
    "src/sapa/shipping/scorecards/queries.py": {"lost"},  # a status, and the figure of it
    "src/sapa/messaging/channels/whatsapp/media.py": {"sheet"},  # a media type
    "src/sapa/messaging/files/file_types.py": {"sheet"},
    "src/sapa/sandbox/channels/whatsapp_files.py": {"sheet"},
    "docs/performance.md": {"odd"},  # what `make bench` calls a window that begins and ends within a day
}
"""Files that may have a word because it is stored or printed elsewhere."""

Finding = tuple[str, str]
"""The word, and where it stands."""


def build_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Whole words: the parts of a snake_case name are words, too."""
    listed = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z])(?:{listed})(?![A-Za-z])")


_IN_PROSE = build_pattern([*WORDS, *PHRASES])
_IN_NAMES = build_pattern(NAMES)
_IN_SQL = build_pattern(IN_SQL)
_TEST = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def list_in_text(path: str, text: str) -> Iterator[Finding]:
    for match in _IN_PROSE.finditer(text):
        yield re.sub(r"\s+", " ", match[0]), f"{path}:{text.count(chr(10), 0, match.start()) + 1}"


def list_in_names(path: str, text: str) -> Iterator[Finding]:
    if not _IN_NAMES.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "arg", "attr", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield from ((match[0], f"{path}:{getattr(node, 'lineno', 1)}") for match in _IN_NAMES.finditer(name))


def list_in_statements(path: str, text: str, stored: set[str]) -> Iterator[Finding]:
    """Names inside the SQL texts of a module; `stored` are the schema's own."""
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            names = set(_IDENTIFIER.findall(node.value)) - stored
            yield from ((name, f"{path}:{node.lineno}") for name in sorted(names) if _IN_SQL.fullmatch(name))


def list_stored_names(schema: str) -> set[str]:
    return set(_IDENTIFIER.findall(re.sub(r"--.*", "", schema)))


def list_in_test_names(path: str, text: str) -> Iterator[Finding]:
    """The names of tests, and of the modules that they stand in."""
    for test in _TEST.finditer(text):
        line = text.count("\n", 0, test.start(1)) + 1
        yield from ((word, f"{path}:{line}") for word, _ in list_in_text(path, test[1].replace("_", " ")))
    yield from ((word, path) for word, _ in list_in_text(path, Path(path).stem.replace("_", " ")))


def list_findings(root: Path = REPOSITORY) -> list[Finding]:
    found: list[Finding] = []
    stored = list_stored_names((SOURCE / "db/schema.sql").read_text())
    for pattern in ("src/**/*.py", "src/**/*.md", "*.md", "docs/**/*.md"):
        for path, text in _read(root, pattern):
            names = list_in_names(path, text) if path.endswith(".py") else ()
            sql = list_in_statements(path, text, stored) if path.endswith(STATEMENT_FILES) else ()
            found += [
                (word, place) for word, place in (*list_in_text(path, text), *names, *sql) if not _is_stored(word, path)
            ]
    for path, text in _read(root, "tests/**/*.py"):
        found += list_in_test_names(path, text)
    return found


def _is_stored(word: str, path: str) -> bool:
    if word == "given" and path.startswith("src/sapa/console/"):
        return True  # a variable of the templates, which keep their words for now
    if word == "forgotten" and path == "src/sapa/console/password_reset_pages.py":
        return True  # a route
    return word in STORED.get(path, set())


def _read(root: Path, pattern: str) -> Iterator[tuple[str, str]]:
    for path in sorted(root.glob(pattern)):
        name = path.relative_to(root).as_posix()
        if not name.startswith(EXEMPT) and name != "CHANGELOG.md":
            yield name, path.read_text()


def list_shared_class_names(modules: dict[str, Module]) -> list[str]:
    """Public classes of one name in two modules. Adapters' wire modules speak their provider's words."""
    homes: dict[str, list[str]] = defaultdict(list)
    for name, module in modules.items():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not name.endswith(".wire"):
                homes[node.name].append(name.removeprefix(f"{PACKAGE}."))
    return [f"{name}: {', '.join(places)}" for name, places in sorted(homes.items()) if len(places) > 1]


if __name__ == "__main__":
    for word, count in sorted(Counter(word for word, _ in list_findings()).items()):
        print(f'    "{word}": {count},')
