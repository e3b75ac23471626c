"""Types of an installed package: classes, addons and message classes, by its entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROTO = """
syntax = "proto3";
package acme.v1;
message Rocket { string maker_name = 1; int64 thrust = 2; string pad = 3; }
"""
CODE = """
import msgspec
from typing import Annotated
from lehr.model.evolution import Evolution
from lehr.model.types import AddonType, AssetType, Reference
from lehr.model.message_types import message_type

from acme_pb2 import Rocket


class Pad(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    '''Where rockets start.'''

    label: str
    kind: str = "concrete"


class Crew(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    '''Who flies.'''

    size: Annotated[int, msgspec.Meta(ge=1)]


def renamed(version, value):
    return {"label" if key == "name" else key: item for key, item in value.items()}


def types():
    yield AssetType("acme.Pad", Pad, enforced=False, evolution=Evolution(2, renamed))
    yield AddonType("acme.Crew", Crew)
    yield message_type(Rocket, references={"/pad": Reference(("acme.Pad",))}, enforced=False)
"""
ASSETS = """\
- {id: pad, type: acme.Pad, version: 1, payload: {name: A}}
- id: saturn
  type: acme.v1.Rocket
  payload: {maker_name: ACME, thrust: 35, pad: pad}
  addons: {acme.Crew: {size: 3}}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in it, as pip would put it."""
    folder = tmp_path_factory.mktemp("site")
    about = folder / "acme-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[lehr.types]\nacme = acme:types\n")
    (folder / "acme.py").write_text(CODE)
    (folder / "acme.proto").write_text(PROTO)
    protoc = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", "-I.", "--python_out=."]
    subprocess.run([*protoc, "acme.proto"], check=True, cwd=folder)
    return folder


def lehr(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(site), *filter(None, sys.path)))
    return subprocess.run(
        [sys.executable, "-m", "lehr", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=150,
    )


def test_types_of_a_package_are_checked_stored_and_explained_alike(site: Path, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "lehr.yaml").write_text("partition: test\n")
    (tmp_path / "assets/all.yaml").write_text(ASSETS)

    def told(*arguments: str) -> Any:
        done = lehr(site, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told("run", "--once")
    stored = json.loads(told("get", "assets", "--incarnation", "latest", "-o", "json"))
    assert [(item["payload"], item["addons"], item.get("versions")) for item in stored] == [
        ({"label": "A", "kind": "concrete"}, {}, {"acme.Pad": 2}),
        ({"makerName": "ACME", "thrust": "35", "pad": "pad"}, {"acme.Crew": {"size": 3}}, None),
    ]
    assert "saturn" in told("get", "referrers", "pad")
    page = json.loads(told("explain", "acme.v1.Rocket", "-o", "json"))
    assert (page["form"], page["origin"]) == ("protobuf", "a package")
    assert "names an asset of type acme.Pad" in told("explain", "acme.v1.Rocket.pad")
    (tmp_path / "assets/all.yaml").write_text(ASSETS.replace("thrust: 35", "thrst: 35").replace("3}", "0}"))
    refused = lehr(site, tmp_path, "validate")
    assert refused.returncode == 1
    assert "did you mean `thrust`?" in refused.stdout + refused.stderr
    assert "`size`" in refused.stdout + refused.stderr
