"""Of two workspaces that claim the same thing, the second one is refused before it touches anything."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, strict
from tests.postgres import PostgresServer


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


def test_a_renamed_asset_waits_until_the_former_one_is_removed(tmp_path: Path) -> None:
    one, _, motd = workspaces(tmp_path)
    assert one.once().code == 0
    down = {"reason": "renamed", "fence_seconds": 600}
    one.declare("motd", "lehr.File", {"path": str(motd), "content": "one"}, Turndown=down)
    one.commit()
    one.once()
    assert not motd.exists(), "it is fenced"
    (one.repository / "assets" / "motd.json").unlink()
    one.declare("message", "lehr.File", {"path": str(motd), "content": "new"})
    one.commit()
    one.once().failed(
        "error[VAL030]",
        f"`message` claims file {motd}, which `motd` holds: it is still being turned down",
        "wait until `motd` is removed (lehr why motd)",
        "--> assets/message.json:1:1",
    )
    assert not motd.exists()
    assert "error[VAL030]" in one.lehr("validate", str(one.repository)).out
    one.declare("motd", "lehr.File", {"path": str(motd), "content": "one"})
    (one.repository / "assets" / "message.json").unlink()
    one.commit()
    assert one.once().code == 0
    assert motd.read_text() == "one"


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


def test_validate_and_plan_refuse_what_publication_would_and_take_nothing(tmp_path: Path) -> None:
    one, other, motd = workspaces(tmp_path)
    del other.environment["LEHR_STATE"]
    assert one.once().code == 0
    for command in ("validate", "plan"):
        done = other.lehr(command, str(other.repository))
        assert done.code == 1
        for word in ("error[VAL031]", f"(that is, {motd}), which partition shop", "assets/message.json:1:1"):
            assert word in done.out + done.err
    held = json.loads(other.lehr("claims", "-o", "json").out)
    assert [item["asset"] for item in held] == ["motd"]
    other.declare("message", "lehr.File", {"path": str(tmp_path / "mine"), "content": "other"})
    done = other.lehr("validate", str(other.repository))
    assert (done.code, done.out) == (0, ""), "an asset of one's own is nobody's"
    assert json.loads(other.lehr("claims", "-o", "json").out) == held


def test_validate_and_plan_refuse_a_path_into_the_state(tmp_path: Path) -> None:
    one, _, _ = workspaces(tmp_path)
    del one.environment["LEHR_STATE"]
    states = tmp_path / "states" / "lehr"
    one.declare("motd", "lehr.File", {"path": str(states / "x"), "content": "one"})
    for command in ("validate", "plan"):
        done = one.lehr(command, str(one.repository))
        assert done.code == 1
        assert "error[VAL032]" in done.out + done.err


@pytest.mark.parametrize("damaged", [False, True])
def test_validate_and_plan_say_so_where_there_is_no_register_to_be_read(
    tmp_path: Path, damaged: bool
) -> None:
    one, other, _ = workspaces(tmp_path)
    del other.environment["LEHR_STATE"]
    words = ["claims are not compared with those of other partitions"]
    if damaged:
        assert one.once().code == 0
        [register] = (tmp_path / "states").glob("lehr/claims-*.sqlite")
        register.write_bytes(b"not a database" * 100)
        words += ["warning[VAL033]", "cannot be used", str(register)]
    else:
        words += ["note: ", "there is no register of claims yet"]
    for command in ("validate", "plan"):
        done = other.lehr(command, str(other.repository))
        assert done.code == 0, done.err
        for word in words:
            assert word in done.out + done.err
    assert damaged or not list((tmp_path / "states").rglob("claims-*"))


# --- with stores in one PostgreSQL -----------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    try:
        running.start()
        yield running
    finally:
        running.close()


@pytest.fixture
def two_users(server: PostgresServer, tmp_path: Path) -> tuple[Workspace, Workspace, Path]:
    """As `workspaces`, of people who share a host and a database, and no folder of states."""
    one, other, motd = workspaces(tmp_path)
    database = f"claims_{zlib.crc32(bytes(tmp_path))}"
    with server.connect() as db:
        db.execute(f"CREATE DATABASE {database}".encode())
    for workspace, schema in ((one, "shop"), (other, "blog")):
        workspace.environment["XDG_STATE_HOME"] = str(workspace.folder / "states")
        workspace.environment["LEHR_STORE"] = f"{server.url(database)}&schema={schema}"
    return one, other, motd


def test_of_two_users_with_one_database_the_second_is_refused(
    two_users: tuple[Workspace, Workspace, Path],
) -> None:
    one, other, motd = two_users
    contested = other.repository / "assets" / "message.json"
    message = contested.read_text()
    other.declare("message", "lehr.File", {"path": str(other.production / "message"), "content": "other"})
    other.commit()
    for workspace in (other, one):
        done = workspace.once()
        assert done.code == 0, done.err
    contested.write_text(message)
    other.commit()
    for command in ("validate", "plan"):
        done = other.lehr(command, str(other.repository))
        assert done.code == 1
        assert "error[VAL031]" in done.out + done.err
    other.once().failed("error[VAL031]", "which partition shop (its asset `motd`) holds", str(one.state))
    assert motd.read_text() == "one"
    held = json.loads(other.lehr("claims", "-o", "json").out)
    assert (f"path:{motd}", "motd", str(one.state)) in [
        (item["claim"], item["asset"], item["state"]) for item in held
    ]
    done = other.lehr("claims", "--release", str(one.state))
    assert (done.code, done.err) == (0, "1 claim released\n")
    assert other.once().code == 0
    assert motd.read_text() == "other"
    one.once().failed("ClaimedElsewhere", "belongs to `message` of partition blog")
    assert "no damage found" in one.lehr("store", "check").out
    done = one.lehr("store", "prune", "--keep", "1", "--older-than", "10m")
    assert done.code == 0, done.err


def test_claims_of_a_state_that_cannot_be_looked_into_are_not_released(tmp_path: Path) -> None:
    one, other, _ = workspaces(tmp_path)
    assert one.once().code == 0
    one.state.parent.chmod(0)
    try:
        done = other.lehr("claims", "--release", str(one.state), prefix=strict())
    finally:
        one.state.parent.chmod(0o700)
    done.failed("error[CLI107]")
