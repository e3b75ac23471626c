"""Plain asset files, and the way back from a value to its line."""

from __future__ import annotations

from lehr.base.diagnostics import Position
from lehr.generate.typing.asset_files import place_of, read_assets
from lehr.testing.samples import registry

MANY = b"""\
- id: a
  type: sample.Service
---
assets:
- id: r
  type: sample.Route
  payload:
    path: /
    service: a
"""


def test_the_place_of_a_value_is_found_again_in_any_document() -> None:
    assert place_of("assets/x.yaml", MANY, "r", "/payload/service") == Position("assets/x.yaml", 9, 5)
    assert place_of("assets/x.yaml", MANY, "a", "/type") == Position("assets/x.yaml", 2, 3)
    assert place_of("assets/x.yaml", MANY, "gone", "") is None
    assert place_of("generators/x.py", b"", "a", "") is None


def test_sound_assets_of_a_file_are_kept_beside_broken_ones() -> None:
    made = read_assets("x.json", b'[{"id": "a", "type": "sample.Service"}, {"id": "b"}, 5]', "1", registry())
    assert [asset.id for asset in made.assets] == ["a"]
    assert [item.code for item in made.diagnostics] == ["GEN003", "GEN003"]


def test_where_an_asset_is_declared_is_no_part_of_its_digest() -> None:
    one = read_assets("x.yaml", b"{id: a, type: sample.Service}", "1", registry()).assets[0]
    other = read_assets(
        "y.json", b'\n{"type": "sample.Service", "id": "a", "payload": {"replicas": 1}}', "2", registry()
    )
    assert one.digest == other.assets[0].digest
    assert one.origin != other.assets[0].origin


def test_what_is_wrong_with_an_asset_and_with_its_values_is_told_at_once() -> None:
    text = b"""\
id: 012
type: sample.Service
payload: {replicas: many}
addons:
  sample.Nothing: {}
colour: red
"""
    made = read_assets("x.yaml", text, "1", registry())
    assert not made.assets
    told = [(item.code, item.at.line) for item in made.diagnostics if item.at is not None]
    assert sorted(told) == [("GEN003", 1), ("GEN003", 6), ("GEN006", 5), ("GEN007", 3)]
