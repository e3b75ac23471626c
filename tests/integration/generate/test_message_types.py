"""Protobuf messages as types of a workspace: a descriptor set, and a file that names a message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic, errors
from lehr.generate.typing.asset_files import place_of
from lehr.sdk.generation import Generated
from lehr.testing.sim.generation import InlineGeneration
from lehr.testing.sim.source import files
from lehr.testing.world import registry

PROTO = """
syntax = "proto3";
package shop.v1;
// What a shop sells.
message Product {
  string display_name = 1;
  int64 price_cents = 2;
  repeated string sold_by = 3;
  map<string, int32> weights = 4;
  Key signing_key = 5;
  repeated Product parts = 6;
}
message Key { string secret = 1; string version = 2; string digest = 3; }
"""
TYPE = """\
message: shop.v1.Product
references:
  /soldBy/*: {types: [shop.v1.Product]}
  /weights/#: {goes_first: true}
secrets: [/signingKey]
"""
QUILL = "id: quill\ntype: shop.v1.Product\npayload:\n  display_name: Quill\n  price_cents: 250\n"


def described(folder: Path, proto: str) -> bytes:
    (folder / "shop.proto").write_text(proto)
    command = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", "-I.", "--include_source_info"]
    subprocess.run([*command, "--descriptor_set_out=out", "shop.proto"], check=True, cwd=folder)
    return (folder / "out").read_bytes()


@pytest.fixture(scope="module")
def descriptors(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return described(tmp_path_factory.mktemp("proto"), PROTO)


class Workspace:
    """A workspace in memory, and a generation that remembers what it has built of it."""

    def __init__(self, descriptors: bytes, **contents: str) -> None:
        self.registry = registry()
        self.contents: dict[str, str | bytes] = {
            "lehr.yaml": "partition: test\n",
            "types/shop.binpb": descriptors,
            "types/product.yaml": TYPE,
            "assets/quill.yaml": QUILL,
        }
        self.contents.update(contents)
        self._generation = InlineGeneration(self.registry, SystemClock())

    def build(self) -> Generated:
        encoded = {
            path: text if isinstance(text, bytes) else text.encode()
            for path, text in self.contents.items()
            if text
        }
        step = self._generation.generate(files(encoded))
        try:
            step.send(None)
        except StopIteration as stop:
            answer: Generated = stop.value
            return answer
        raise AssertionError("an inline generation waits for nothing")


def told(found: Generated) -> list[tuple[str, str]]:
    return [(item.code, str(item.at)) for item in errors(found.diagnostics)]


def document(found: Generated, id: str) -> Any:
    [asset] = [asset for asset in found.assets.values() if asset.id == id]
    return asset.document()


def problems(found: Generated, code: str) -> list[Diagnostic]:
    return [item for item in errors(found.diagnostics) if item.code == code]


def test_a_message_is_a_type_and_its_values_are_stored_in_one_form(descriptors: bytes) -> None:
    workspace = Workspace(descriptors)
    found = workspace.build()
    assert told(found) == []
    assert found.types == ("shop.v1.Product",)
    assert document(found, "quill")["payload"] == {
        "displayName": "Quill",
        "priceCents": "250",
        "soldBy": [],
        "weights": {},
        "parts": [],
    }
    assert document(found, "type/shop.v1.Product")["payload"]["description"] == "What a shop sells."
    other = Workspace(descriptors)
    other.contents["assets/quill.yaml"] = QUILL.replace("price_cents: 250", 'priceCents: "250"')
    assert other.build().assets == found.assets


def test_references_stand_in_lists_and_in_the_keys_of_maps(descriptors: bytes) -> None:
    workspace = Workspace(descriptors)
    workspace.contents["assets/quill.yaml"] = QUILL + "  sold_by: [a, b]\n  weights: {c: 1}\n"
    found = workspace.build()
    [quill] = [asset for asset in found.assets.values() if asset.id == "quill"]
    assert [(item.path, item.target, item.goes_first) for item in workspace.registry.mentions(quill)] == [
        ("/payload/soldBy/0", "a", False),
        ("/payload/soldBy/1", "b", False),
        ("/payload/weights/c", "c", True),
    ]


def test_every_misfit_is_told_with_its_place(descriptors: bytes) -> None:
    broken = QUILL + "  colour: red\n  weights: {a: heavy}\n  parts:\n  - {displayname: x}\n"
    found = Workspace(descriptors, **{"assets/quill.yaml": broken.replace("250", "2.5")}).build()
    assert sorted(told(found)) == [
        ("GEN007", "assets/quill.yaml:5:3"),
        ("GEN007", "assets/quill.yaml:6:3"),
        ("GEN007", "assets/quill.yaml:7:13"),
        ("GEN007", "assets/quill.yaml:9:6"),
    ]


def test_what_validators_find_points_to_the_name_that_a_field_has_in_the_file() -> None:
    content = (QUILL + "  sold_by: [a, b]\n").encode()
    found = place_of("assets/quill.yaml", content, "quill", "/payload/soldBy/1")
    assert str(found) == "assets/quill.yaml:6:16"


@pytest.mark.parametrize("name", ["signing_key", "signingKey"])
def test_a_sensitive_field_holds_no_value_by_whichever_name(descriptors: bytes, name: str) -> None:
    found = Workspace(descriptors, **{"assets/quill.yaml": f"{QUILL}  {name}: hunter2\n"}).build()
    assert {item.code for item in errors(found.diagnostics)} == {"GEN016"}
    assert "hunter2" not in repr(found.diagnostics)


def test_another_descriptor_set_judges_every_asset_anew(descriptors: bytes, tmp_path: Path) -> None:
    workspace = Workspace(descriptors)
    assert told(workspace.build()) == []
    workspace.contents["types/shop.binpb"] = described(tmp_path, PROTO.replace("price_cents", "price"))
    assert told(workspace.build()) == [("GEN007", "assets/quill.yaml:5:3")]
    workspace.contents["types/shop.binpb"] = descriptors
    assert told(workspace.build()) == []


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("message: shop.v1.Produkt", "1:1", "`shop.v1.Produkt`"),
        ("message: shop.v1.Product\nname: a.B", "2:1", "`name`"),
        ("message: shop.v1.Product\nschema: {}", "2:1", "`schema`"),
        ("message: 5", "1:1", "type"),
        ("name: a.B\nschema: {}\nform: protobuf", "3:1", "`form`"),
    ],
)
def test_a_file_that_names_no_message_is_told(descriptors: bytes, text: str, place: str, what: str) -> None:
    found = Workspace(descriptors, **{"types/product.yaml": text, "assets/quill.yaml": ""}).build()
    [problem] = problems(found, "GEN014")
    assert str(problem.at) == f"types/product.yaml:{place}"
    assert what in problem.what


def test_what_is_no_descriptor_set_is_told_and_so_is_what_lacks_it() -> None:
    found = Workspace(b"\xff\xff", **{"assets/quill.yaml": ""}).build()
    assert sorted(str(item.at) for item in problems(found, "GEN014")) == [
        "types/product.yaml:1:1",
        "types/shop.binpb",
    ]
    found = Workspace(b"", **{"assets/quill.yaml": ""}).build()
    [problem] = problems(found, "GEN014")
    assert "protoc --include_imports" in problem.fix


def test_messages_have_versions_like_other_types(descriptors: bytes) -> None:
    was = "version: 2\nwas: [{version: 1, steps: [{rename: {/label: /displayName}}]}]\n"
    old = "id: quill\ntype: shop.v1.Product\nversion: 1\npayload: {label: Quill, priceCents: 250}\n"
    found = Workspace(descriptors, **{"types/product.yaml": TYPE + was, "assets/quill.yaml": old}).build()
    assert told(found) == []
    assert document(found, "quill")["payload"]["displayName"] == "Quill"
    assert document(found, "quill")["versions"] == {"shop.v1.Product": 2}
