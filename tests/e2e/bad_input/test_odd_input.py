"""Given files that programs like to misunderstand, when they are committed, then they mean one thing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, until

ANYTHING = "name: team.Thing\nschema: {type: object}\n"
THING = """\
id: thing
type: team.Thing
payload:
  no: no
  octal: 012
  version: 1.10
  quoted: "1.10"
  time: 12:30:45
  date: 2024-01-01
  odd: 9007199254740993
  most: 18446744073709551615
  nothing: ~
"""


def test_what_other_loaders_confuse_means_the_same_everywhere(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.write("types/thing.yaml", ANYTHING)
    workspace.write("assets/thing.yaml", THING.replace("\n", "\r\n"))
    workspace.commit()
    assert workspace.once().code == 0
    described = workspace.lehr("describe", "thing", "-o", "json").out
    for value in ("9007199254740993", "18446744073709551615", '"12:30:45"', '"2024-01-01"', '"no"', '"1.10"'):
        assert value in described, described


@pytest.mark.parametrize("kind", ["link", "submodule"])
def test_what_leads_out_of_the_repository_is_not_followed_and_said(kind: str, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    path = workspace.production / "secret.txt"
    asset = {"id": "secret", "type": "lehr.File", "payload": {"path": str(path), "content": "hidden\n"}}
    (outside / "secret.json").write_text(json.dumps(asset))
    motd = workspace.declare_file("motd", "one\n")
    commit = workspace.commit()
    if kind == "link":
        (workspace.repository / "assets" / "more").symlink_to(outside)
        (workspace.repository / "assets" / "secret.json").symlink_to(outside / "secret.json")
        workspace.commit()
    else:
        workspace.git("update-index", "--add", "--cacheinfo", f"160000,{commit},assets/more")
        workspace.git("commit", "--quiet", "--message", "A submodule")
    with workspace.run() as running:
        running.says("production is as intended: 1 asset")
        until("the file is there", motd.exists)
        assert not path.exists()
    why = workspace.lehr("why", "--all").out + running.said()
    assert "warning[GEN013]: assets/more is not read" in " ".join(why.split()), why


def test_a_name_that_is_no_text_is_named_and_what_is_in_force_is_looked_after(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    motd = workspace.declare_file("motd", "one\n")
    workspace.commit()
    with workspace.run("--poll", "1s") as running:
        running.says("production is as intended")
        blob = workspace.git("hash-object", "-w", str(workspace.repository / "lehr.yaml"))
        tree = workspace.git("ls-tree", "HEAD").encode().replace(b"\n", b"\0") + b"\0"
        listed = tree + f"100644 blob {blob}\t".encode() + b"caf\xe9.yaml\0"
        made = workspace.git_bytes("mktree", "-z", feed=listed).decode().strip()
        commit = workspace.git("commit-tree", made, "-p", "HEAD", "-m", "Latin 1")
        workspace.git("update-ref", "refs/heads/main", commit)
        running.says(
            "was refused",
            "shop@1 stays in force",
            r"error[PUB007]: a file name is not UTF-8: b'caf\xe9.yaml'",
            "fix: rename the file",
        )
        motd.unlink()
        until("what is in force is looked after", motd.exists, running.said)
