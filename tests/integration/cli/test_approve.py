"""Approving: exactly the diff that was shown, and nothing without somebody's word."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.cli.approve import approve
from lehr.control.messages import AnyRequest, Approve, CommandResult
from lehr.control.socket import SOCKET, listening
from lehr.model.asset import AssetId, Partition, make_asset
from lehr.model.decision import Condition, Decision, Status
from lehr.model.diff import Change, Diff, Effects, Goal
from lehr.model.incarnation import Candidate
from lehr.model.reason import Reason
from lehr.model.writes import Publish, RecordDecision
from lehr.store.sqlite import SqliteStore

DIFF = Diff((Change("columns/email", None, "text"),), Effects(destructive=True))
CALL = ["db/schema", "--reason", "not read any more"]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state in which `db/schema` waits for an approval, and `db/data` does not."""
    store = SqliteStore(tmp_path / "state.sqlite")
    partition = Partition("shop")
    assets = tuple(make_asset(AssetId(id), "test.Thing", {}, {}) for id in ("db/schema", "db/data"))
    decision = Decision(
        partition=partition,
        asset=AssetId("db/schema"),
        at=1.0,
        content=1,
        governing=1,
        goal=Goal.PRESENT,
        condition=Condition(Status.WAITING, Reason.APPROVAL_NEEDED),
        event="start",
        diff=DIFF,
    )
    store.commit(
        [Publish(Candidate(partition, 0, (), Digest("g"), assets, ()), {}, (), 1.0), RecordDecision(decision)]
    )
    store.close()
    return tmp_path


def test_the_diff_is_shown_and_exactly_it_is_approved(state: Path) -> None:
    heard: list[AnyRequest] = []

    def answer_one() -> None:
        connection, _address = server.accept()
        with connection, connection.makefile("rwb") as channel:
            heard.append(msgspec.json.decode(channel.readline(), type=AnyRequest))
            channel.write(msgspec.json.encode(CommandResult(True, "approval set")) + b"\n")

    with listening(state / SOCKET) as server:
        server.settimeout(10)
        serving = threading.Thread(target=answer_one)
        serving.start()
        result = CliRunner().invoke(approve, [*CALL, "--yes", "--state", str(state)])
        serving.join(10)
    assert result.exit_code == 0
    assert result.stdout == "approval set\n"
    assert "columns/email: is text" in result.stderr
    assert heard == [Approve(selector="id=db/schema", reason="not read any more", diff_digest=DIFF.digest())]


def test_off_a_terminal_nothing_is_approved_without_yes(state: Path) -> None:
    result = CliRunner().invoke(approve, [*CALL, "--state", str(state)])
    assert result.exit_code == 2
    assert "--yes" in result.stderr


def test_another_diff_than_the_one_that_was_seen_is_not_approved(state: Path) -> None:
    result = CliRunner().invoke(approve, [*CALL, "--yes", "--diff", "0123", "--state", str(state)])
    assert isinstance(result.exception, LehrError)
    assert result.exception.code == "CLI106"
    assert DIFF.digest()[:12] in str(result.exception)


def test_what_waits_for_no_approval_is_not_approved(state: Path) -> None:
    result = CliRunner().invoke(approve, ["db/data", "--reason", "x", "--yes", "--state", str(state)])
    assert isinstance(result.exception, LehrError)
    assert result.exception.code == "CLI105"
