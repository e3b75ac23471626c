"""Of two workspaces that claim the same thing, the second one is refused before it touches anything."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.bad_input.workspace import Workspace


def workspaces(folder: Path) -> tuple[Workspace, Workspace, Path]:
    """Two partitions that both want one file, by different names; its path."""
    one, other = Workspace(folder / "one"), Workspace(folder / "other")
    other.write("lehr.yaml", "partition: blog\n")
    motd = folder / "etc" / "motd"
    motd.parent.mkdir()
    (folder / "link").symlink_to("etc")
    one.declare("motd", "lehr.File", {"path": str(motd), "content": "one"})
    other.declare("message", "lehr.File", {"path": str(folder / "link" / "motd"), "content": "other"})
    for workspace in (one, other):
        workspace.environment["XDG_STATE_HOME"] = str(folder / "states")
        workspace.commit()
    return one, other, motd


def test_the_second_partition_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    one, other, motd = workspaces(tmp_path)
    done = one.once()
    assert done.code == 0, done.err
    other.once().failed(
        "error[VAL031]",
        f"`message` claims file {tmp_path}/link/motd (that is, {motd})",
        "which partition shop (its asset `motd`) holds",
        f"the state of that partition is in {one.state}",
        "--> assets/message.json:1:1",
    )
    assert motd.read_text() == "one"
    held = json.loads(other.lehr("claims", "-o", "json").out)
    assert [(item["claim"], item["asset"]) for item in held] == [(f"path:{motd}", "motd")]
    one.write("lehr.yaml", "partition: shop\nlet_go: {motd: blog has it now}\n")
    one.declare_file("another", "x")
    (one.repository / "assets" / "motd.json").unlink()
    one.commit()
    done = one.once()
    assert done.code == 0, done.err
    done = other.once()
    assert done.code == 0, done.err
    assert motd.read_text() == "other"


def test_what_comes_to_lead_to_another_partitions_file_is_not_pushed(tmp_path: Path) -> None:
    one, other, motd = workspaces(tmp_path)
    assert one.once().code == 0
    (tmp_path / "link").unlink()
    (tmp_path / "link").mkdir()
    assert other.once().code == 0
    (tmp_path / "link" / "motd").unlink()
    (tmp_path / "link").rmdir()
    (tmp_path / "link").symlink_to("etc")
    other.once().failed("ClaimedElsewhere", f"(that is, {motd}) belongs to `motd` of partition shop")
    assert motd.read_text() == "one"


def test_claims_of_a_workspace_that_is_gone_can_be_released(tmp_path: Path) -> None:
    one, other, motd = workspaces(tmp_path)
    assert one.once().code == 0
    done = other.lehr("claims", "--release", str(one.state))
    assert (done.code, done.err) == (0, "1 claim released\n")
    assert other.once().code == 0
    assert motd.read_text() == "other"
