"""`lehr replay`: a decision by its number, or the newest about an asset; from a state, and from a server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.http.server import Address
from lehr.model.incarnation import Candidate
from lehr.model.writes import Publish, RecordDecision
from lehr.query.run_state import idle
from lehr.store.sqlite import SqliteStore
from lehr.testing.virtual import EPOCH
from lehr.wiring.program import Answering, answering
from tests.unit.enforce.test_turn_inputs import TURNS, decided
from tests.unit.enforce.turns import ASSET, KEY


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Three decisions about `a`: one that is the same, one that is not, and one without inputs."""
    tmp_path.chmod(0o700)
    store = SqliteStore(tmp_path / "state.sqlite")
    store.commit([Publish(Candidate(KEY.partition, 0, (), Digest("g"), (ASSET,), ()), {}, (), EPOCH)])
    decision, inputs = decided(*TURNS["a check"])
    forged = replace(decision, condition=replace(decision.condition, message="\x1b[31mall is well"))
    store.commit([RecordDecision(decision, inputs), RecordDecision(forged, inputs), RecordDecision(decision)])
    store.close()
    return tmp_path


def lehr(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["replay", *arguments])


def test_a_decision_that_is_the_same_is_shown_with_its_condition(state: Path) -> None:
    done = lehr("1", "--state", str(state))
    assert (done.exit_code, done.stdout.splitlines()[0].split()[:4]) == (0, ["same", "decision", "#1", "on"])
    assert "  decided    Waiting (RateLimited): a: b is not there" in done.stdout.splitlines()


def test_a_number_may_be_written_as_it_is_printed(state: Path) -> None:
    assert lehr("#1", "--state", str(state)).stdout == lehr("1", "--state", str(state)).stdout


def test_a_decision_that_differs_fails_and_says_where(state: Path) -> None:
    done = lehr("2", "--state", str(state))
    assert done.exit_code == 1
    first, recorded, again, where = done.stdout.splitlines()
    assert first.startswith("different  decision #2 on ")
    assert recorded.endswith("all is well")
    assert "\x1b" not in recorded
    assert again == "  again      Waiting (RateLimited): a: b is not there"
    assert where == "  differs in condition; see -o json"


def test_json_has_both_values_of_each_field_that_differs(state: Path) -> None:
    done = lehr("2", "--state", str(state), "-o", "json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["number"], found["asset"], found["same"]) == (2, KEY.id, False)
    [difference] = found["differences"]
    assert difference["field"] == "condition"
    assert difference["again"]["message"] == found["again"]["message"] == "a: b is not there"
    assert found["at"].endswith("Z")


def test_an_asset_names_its_newest_decision(state: Path) -> None:
    done = lehr(KEY.id, "--state", str(state))
    assert isinstance(done.exception, LehrError)
    assert done.exception.code == "ENF112"  # which is decision 3


@pytest.mark.parametrize(
    ("decision", "code"), [("4", "ENF114"), ("0", "ENF114"), ("9" * 40, "QRY121"), ("none", "QRY121")]
)
def test_what_is_not_a_decision_is_refused(state: Path, decision: str, code: str) -> None:
    done = lehr(decision, "--state", str(state))
    assert isinstance(done.exception, LehrError)
    assert done.exception.code == code


def test_a_server_answers_as_the_state_does(state: Path) -> None:
    async def main() -> None:
        how = Answering(Address("127.0.0.1", 0), public_read=True)
        async with answering(how, state, None, lambda: idle(0.0)) as server:
            url = f"http://{server.address}"
            for number in "12":
                expected = lehr(number, "--state", str(state), "-o", "json")
                found = await asyncio.to_thread(lehr, number, "--server", url, "-o", "json")
                assert (found.exit_code, found.stdout) == (expected.exit_code, expected.stdout)
            for decision, code in (("3", "ENF112"), ("4", "ENF114"), (KEY.id, "ENF112")):
                found = await asyncio.to_thread(lehr, decision, "--server", url)
                assert isinstance(found.exception, LehrError)
                assert found.exception.code == code

    asyncio.run(main())
