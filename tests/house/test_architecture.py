"""The picture in docs/architecture.md shows the rooms and imports of today."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

import pytest

from tests.house.source_tree import SOURCE

REPOSITORY = SOURCE.parents[1]


@pytest.fixture(scope="module")
def draw_rooms() -> ModuleType:
    loader = SourceFileLoader("draw_rooms", str(REPOSITORY / "scripts" / "draw_rooms"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_picture_is_up_to_date(draw_rooms: ModuleType) -> None:
    committed = (REPOSITORY / "docs" / "architecture.svg").read_text()
    assert committed == draw_rooms.build_picture(), "docs/architecture.svg is stale; run `make docs`"


def test_only_implied_lines_are_left_out(draw_rooms: ModuleType) -> None:
    edges = {("api", "actions"), ("actions", "types"), ("api", "types"), ("jobs", "types")}
    assert draw_rooms.drop_implied(edges) == edges - {("api", "types")}


def test_the_picture_has_every_room(draw_rooms: ModuleType) -> None:
    picture = draw_rooms.build_picture()
    rooms = {name for layers in draw_rooms.read_layers().values() for layer in layers for name in layer}
    assert [name for name in sorted(rooms) if f">{name}</text>" not in picture] == []
