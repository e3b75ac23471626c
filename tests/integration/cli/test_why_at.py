"""`lehr why --at`: the explanation as it was, and what of it is no longer known."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.base.moments import rfc3339
from lehr.cli.main import cli
from lehr.http.server import Address
from lehr.model.control import ControlKind
from lehr.model.decision import Status, Verdict
from lehr.model.reason import Reason
from lehr.model.writes import LiftControl
from lehr.query.run_state import idle
from lehr.wiring.program import Answering, answering
from tests.integration.http.test_explanations_over_http import get
from tests.unit.query.conftest import PARTITION, Shelf
from tests.unit.query.test_explain_at import prune

FROZEN = Verdict("freeze/f", allow=False, reason=Reason.FROZEN, message="frozen by ana: market day")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """`a` was frozen at 1003 to 1005, and has converged at 1006."""
    tmp_path.chmod(0o700)
    shelf = Shelf(tmp_path / "state.sqlite")
    shelf.publish(shelf.asset("a"))
    shelf.say(ControlKind.FREEZE, "a")
    shelf.decide("a", Status.WAITING, Reason.FROZEN, "frozen by ana: market day", (FROZEN,))
    shelf.tick()
    shelf.store.commit([LiftControl(PARTITION, "freeze1002", shelf.tick())])
    shelf.decide("a", Status.CONVERGED, Reason.AS_INTENDED, "production is as intended")
    shelf.close()
    return shelf


def why(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["why", "a", "--state", str(folder), *arguments])


def test_the_past_is_explained_in_its_own_time(shelf: Shelf, tmp_path: Path) -> None:
    lines = why(tmp_path, "--at", rfc3339(1004.0)).stdout.splitlines()
    assert lines[0].startswith("at 1970-01-01T00:16:44Z (")
    assert lines[0].endswith("): shop@1 was in force")
    assert lines[1] == "● a is waiting: frozen by ana: market day"
    assert lines[2] == "  since      1s ago (1970-01-01T00:16:43Z)"
    assert "    waits   freeze/f: frozen by ana: market day" in lines
    [control] = [line for line in lines if line.startswith("  control")]
    assert "freeze for id=a by ana, 2s ago" in control
    assert not [line for line in lines if "no `lehr run`" in line or "next" in line]


def test_a_control_that_was_lifted_by_then_is_not_shown(shelf: Shelf, tmp_path: Path) -> None:
    found = json.loads(why(tmp_path, "--at", rfc3339(1005.5), "-o", "json").stdout)
    assert (found["asset"]["status"], found["controls"]) == ("Waiting", [])
    assert found["past"] == {
        "at": rfc3339(1005.5),
        "incarnation": "shop@1",
        "intent_is_kept": True,
        "history_since": None,
    }
    assert json.loads(why(tmp_path, "-o", "json").stdout)["past"] is None


def test_what_was_pruned_is_said(shelf: Shelf, tmp_path: Path) -> None:
    again = Shelf(tmp_path / "state.sqlite")
    again.now = 1006.0
    again.publish(again.asset("a", "2"))
    again.publish(again.asset("a", "3"))
    prune(again, 1008.0)
    again.close()
    done = why(tmp_path, "--at", rfc3339(1004.0))
    assert isinstance(done.exception, LehrError)
    assert done.exception.code == "QRY128"
    lines = why(tmp_path, "--at", rfc3339(1006.5)).stdout.splitlines()
    assert lines[1] == "● a has converged: production is as intended"
    [intent, history] = [line for line in lines if line.startswith("  note")]
    assert "intent of that time was pruned" in intent
    assert "history from before 1970-01-01T00:16:47Z was pruned" in history


@pytest.mark.parametrize("at", ["soon", "", "-5m", "99999999999999999-01-01"])
def test_what_is_not_a_time_is_refused(shelf: Shelf, tmp_path: Path, at: str) -> None:
    assert why(tmp_path, f"--at={at}").exit_code == 2


def test_one_asset_is_explained_at_a_time(shelf: Shelf, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["why", "--all", "--at", "5m", "--state", str(tmp_path)])
    assert done.exit_code == 2
    assert "--all" in done.stderr


def test_a_server_explains_the_past_as_well(shelf: Shelf, tmp_path: Path) -> None:
    expected = json.loads(why(tmp_path, "--at", rfc3339(1004.0), "-o", "json").stdout)

    async def main() -> None:
        how = Answering(Address("127.0.0.1", 0), public_read=True)
        async with answering(how, tmp_path, None, lambda: idle(0.0)) as server:
            at = quote(rfc3339(1004.0))
            assert await get(server, f"why?asset=a&at={at}", PARTITION) == expected
            found = await get(server, "why?asset=a&at=9999-01-01T00:00:00Z", PARTITION, 404)
            assert found["error"] == "QRY127"
            found = await get(server, "why?asset=a&at=soon", PARTITION, 400)
            assert [item["parameter"] for item in found["errors"]] == ["at"]

    asyncio.run(main())
