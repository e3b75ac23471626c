"""Explanations over HTTP: the same values as on the command line, page by page; what is asked wrongly."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from lehr.cli.main import cli
from lehr.http.remote import RemoteStore
from lehr.http.server import Address, Running
from lehr.model.asset import AssetId, AssetKey
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import AuditEntry
from lehr.model.decision import Condition, Decision, Status, Verdict
from lehr.model.diff import Change, Diff, Goal
from lehr.model.operation import Operation, Outcome, PushStep, Result
from lehr.model.reason import Reason
from lehr.model.writes import Admit, Audit, Basis, Finish, Prune, RecordAttempt, RecordDecision, Write
from lehr.query.run_state import RunState, idle
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import (
    NOW,
    PARTITION,
    admitted,
    asset,
    governed,
    request,
)
from lehr.wiring.program import Answering, answering
from tests.integration.cli.test_rollout import SHOP, content, facts, publish
from tests.integration.http.served import ROOT, Served, parsed, served

DIFFERS = Diff((Change("/content", "new", "old"),))
FROZEN = Verdict(
    "freeze/f1",
    allow=False,
    reason=Reason.FROZEN,
    message="frozen by ana: market day",
    unblock="wait",
    until=9e9,
)


def decided(id: str, condition: Condition, *verdicts: Verdict, at: float = 3.0) -> RecordDecision:
    return RecordDecision(
        Decision(
            partition=SHOP,
            asset=AssetId(id),
            at=at,
            content=1,
            governing=2,
            goal=Goal.PRESENT,
            condition=condition,
            event="start",
            diff=DIFFERS,
            verdicts=verdicts,
            evidence={"content_digest": "d"},
        )
    )


def waits(id: str, *verdicts: Verdict) -> RecordDecision:
    first = verdicts[0]
    return decided(id, Condition(Status.WAITING, first.reason, first.message, first.unblock), *verdicts)


def behind(*others: str) -> Verdict:
    return Verdict(
        "depends-on",
        allow=False,
        reason=Reason.DEPENDENCY_DIFFERS,
        message=f"{others[0]} differs",
        unblock=f"wait until {others[0]} converges",
        wait_for=tuple(map(AssetId, others)),
    )


PUSH = "op1"
STEPS = (PushStep(1.5, "adding"), PushStep(2.0, "draining"))


def push_of(store: SqliteStore, id: str) -> Admit:
    newest = store.intent.newest(SHOP)
    assert newest is not None
    asset = store.intent.asset(AssetKey(SHOP, AssetId(id)), newest.sequence)
    assert asset is not None
    operation = Operation(
        PUSH, SHOP, AssetId(id), asset.type, Goal.PRESENT, 1, 2, asset.digest, DIFFERS.digest(), 0, 1.0
    )
    controls, _ = store.records.controls(SHOP, 1.0)
    releases, _ = store.records.released(SHOP)
    return Admit(operation, Basis(asset.digest, newest.governance, controls, releases=releases))


def pushed() -> Finish:
    return Finish(SHOP, PUSH, Outcome(Result.FAILED, "the connection broke"), 3.0, None, STEPS)


def given(number: int) -> Audit:
    return Audit(
        SHOP, AuditEntry(at=float(number), actor="ana", command="pause", arguments={"n": number}, result="ok")
    )


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A rollout holds b, which c waits for; x/1 and x/2 are frozen; y/1 and y/2 wait for each other."""
    tmp_path.chmod(0o700)
    store = SqliteStore(tmp_path / "state.sqlite")
    for sequence in (1, 2):
        publish(store, content(sequence))
    writes: list[Write] = [
        facts(store),
        decided("b", Condition(Status.CONVERGED, Reason.AWAITING_RELEASE, "as in incarnation 1"), at=2.0),
        waits("c", behind("b")),
        waits("x/1", FROZEN),
        waits("x/2", behind("x/1")),
        waits("y/1", behind("y/2")),
        waits("y/2", behind("y/1")),
        *map(given, range(5)),
    ]
    assert store.commit(writes)[0] is None
    assert store.commit([push_of(store, "c"), pushed()]) == [None, None]
    store.close()
    return tmp_path


def said(state: Path, *arguments: str) -> Any:
    """What a command prints with `-o json`."""
    done = CliRunner().invoke(cli, [*arguments, "--state", str(state), "-o", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


async def get(server: Running, target: str, partition: str = SHOP, status: int = 200) -> Any:
    reader, writer = await asyncio.open_connection(server.address.host, server.address.port)
    path = f"/v1/partitions/{partition}/{target}"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    answer = parsed(await reader.read())
    writer.close()
    assert answer.status == status, answer.content
    return answer.json


def ask(state: Path, story: Callable[[Running], Awaitable[None]], run: RunState | None = None) -> None:
    async def main() -> None:
        how = Answering(Address("127.0.0.1", 0), public_read=True)
        async with answering(how, state, None, lambda: run or idle(0.0)) as server:
            await story(server)

    asyncio.run(main())


_TIMES = ("until", "begun_at", "made_at", "early", "late")


def without_times(found: Any) -> Any:
    """Without moments that depend on when it was asked."""
    if isinstance(found, list):
        return [without_times(item) for item in found]
    if isinstance(found, dict):
        return {name: without_times(item) for name, item in found.items() if name not in _TIMES}
    return found


SAME = [
    (("why", "b"), "why?asset=b"),
    (("why", "c"), "why?asset=c"),
    (("rollout", "list"), "rollouts"),
    (("rollout", "show", "waves"), "rollouts/waves"),
    (("rollout", "forecast", "waves"), "rollout-forecast?policy=waves"),
    (("rollout", "forecast", "waves", "--every-unit"), "rollout-forecast?policy=waves&every_unit=true"),
    (("types",), "types"),
    (("explain", "lehr.File"), "types/lehr.File"),
]


def test_each_answer_is_what_the_command_prints(state: Path) -> None:
    expected = [said(state, *command) for command, _target in SAME]
    causes, history, audit = (
        said(state, *command) for command in (("why", "--all"), ("rollout", "history"), ("audit",))
    )

    async def story(server: Running) -> None:
        for (command, target), value in zip(SAME, expected, strict=True):
            assert without_times(await get(server, target)) == without_times(value), command
        found = await get(server, "causes")
        assert found["causes"] == causes["causes"]
        assert (found["count"], found["total"], found["cursor"]) == (7, 4, "")
        assert (await get(server, "rollout-history"))["events"] == history
        assert (await get(server, "audit"))["commands"] == audit

    ask(state, story)


def test_what_explains_a_held_asset_has_the_rollout(state: Path) -> None:
    async def story(server: Running) -> None:
        found = await get(server, "why?asset=c")
        assert found["says"] == "c is waiting: b differs"
        [verdict] = found["verdicts"]
        assert (verdict["check"], verdict["wait_for"]) == ("depends-on", ["b"])
        assert [item["id"] for item in found["waits_for"]] == ["b"]
        assert found["release"]["rollout"]["policy"] == "waves"
        assert found["decisions"][0]["evidence"] == {"content_digest": "d"}

    ask(state, story)


def test_root_causes_are_a_freeze_a_rollout_and_a_cycle(state: Path) -> None:
    async def story(server: Running) -> None:
        causes = (await get(server, "causes?examples=1"))["causes"]
        found = {(item["kind"], item["root"], item["count"]) for item in causes}
        shared = {("check", "freeze/f1", 2), ("rollout", "waves", 2), ("cycle", "y/1", 2)}
        assert found == {*shared, ("condition", "", 1)}
        by_kind = {item["kind"]: item for item in causes}
        assert by_kind["cycle"]["cycle"] == ["y/1", "y/2", "y/1"]
        assert by_kind["check"]["unblock"] == "wait"
        assert by_kind["check"]["examples"] == ["x/1"]
        assert (by_kind["condition"]["status"], by_kind["condition"]["examples"]) == ("NoTurnYet", ["a"])
        assert by_kind["rollout"]["since"] == "1970-01-01T00:00:02.000000Z"

    ask(state, story)


def test_a_field_is_not_a_type(state: Path) -> None:
    async def story(server: Running) -> None:
        problem = await get(server, "types/lehr.File.path", status=404)
        assert (problem["error"], problem["fix"]) == (
            "HTP137",
            "see /types/lehr.File, which has all of its fields",
        )

    ask(state, story)


@pytest.mark.parametrize(
    ("of", "root", "count"),
    [("c", "waves", 2), ("b", "waves", 2), ("x/2", "freeze/f1", 2), ("y/2", "y/1", 2)],
)
def test_the_cause_of_one_asset_counts_everything_that_waits_for_it(
    of: str, root: str, count: int, state: Path
) -> None:
    async def story(server: Running) -> None:
        whole = (await get(server, "causes"))["causes"]
        found = await get(server, f"causes?of={of}")
        [cause] = found["causes"]
        assert cause in whole
        assert (cause["root"], cause["count"]) == (root, count)
        assert of in cause["examples"]
        assert (found["count"], found["total"], found["cursor"]) == (count, 1, "")

    ask(state, story)


def test_a_settled_asset_counts_under_no_cause(state: Path) -> None:
    async def story(server: Running) -> None:
        found = await get(server, "causes?of=waves")
        assert (found["causes"], found["count"], found["total"]) == ([], 0, 0)

    ask(state, story)


@pytest.mark.parametrize(
    ("target", "items"), [("audit", "commands"), ("causes", "causes"), ("rollout-history", "events")]
)
def test_pages_put_together_are_the_whole(target: str, items: str, state: Path) -> None:
    async def story(server: Running) -> None:
        whole = (await get(server, target))[items]
        assert len(whole) > 2
        found: list[Any] = []
        cursor = ""
        while True:
            page = await get(server, f"{target}?limit=2&cursor={cursor}")
            assert 0 < len(page[items]) <= 2
            found += page[items]
            cursor = page["cursor"]
            if not cursor:
                break
        assert found == whole

    ask(state, story)


# --- pushes, neighbours, and what is asked wrongly, of a plainer store ------------------------


def play(folder: Path, story: Callable[[Served], Awaitable[None]]) -> None:
    async def main() -> None:
        async with served(folder) as server:
            await story(server)

    asyncio.run(main())


def test_a_push_has_the_steps_that_its_plugin_reported(state: Path) -> None:
    async def main() -> None:
        how = Answering(Address("127.0.0.1", 0), public_read=True)
        async with answering(how, state, None, lambda: idle(0.0)) as server:
            found = await get(server, f"operations/{PUSH}")
            assert [item["message"] for item in found["steps"]] == ["adding", "draining"]
            assert found["steps"][0]["at"] == "1970-01-01T00:00:01.500000Z"
            assert found == (await get(server, "operations"))["operations"][0]
            problem = await get(server, "operations/none", status=404)
            assert problem["error"] == "HTP141"
            with contextlib.closing(RemoteStore(server.url)) as there:
                one = await asyncio.to_thread(there.records.operation, SHOP, PUSH)
                assert one is not None
                assert one.steps == STEPS
                assert await asyncio.to_thread(there.records.operation, SHOP, "none") is None

    asyncio.run(main())


def test_conditions_of_some_assets_are_one_answer(state: Path) -> None:
    async def main() -> None:
        how = Answering(Address("127.0.0.1", 0), public_read=True)
        async with answering(how, state, None, lambda: idle(0.0)) as server:
            found = await get(server, "standings?asset=x/1,none,c")
            assert [item["asset"] for item in found] == ["x/1", "c"]
            assert await get(server, "standings?asset=x/1") == found[:1]
            many = ",".join(f"a{number}" for number in range(101))
            problem = await get(server, f"standings?asset={many}", status=400)
            assert (problem["error"], problem["errors"][0]["parameter"]) == ("HTP142", "asset")
            counted = await get(server, "counts")
            assert sum(item["count"] for item in counted) == len(await get(server, "standings"))
            assert counted[0] == {"status": "Waiting", "reason": "DependencyDiffers", "count": 4}

    asyncio.run(main())


def test_pushes_under_way_have_their_progress_and_ended_ones_are_paged(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.sqlite")
    tmp_path.chmod(0o700)
    governed(store)
    for number in range(5):
        admitted(store, request(store, f"o{number}", at=NOW + number))
        if number < 4:
            store.commit([Finish(PARTITION, f"o{number}", Outcome(Result.FAILED, "no"), NOW + number)])
    store.close()
    run = RunState(active=True, now=NOW, progress={"o4": "2 of 3 replicas"})

    async def main() -> None:
        async with answering(
            Answering(Address("127.0.0.1", 0), public_read=True), tmp_path, None, lambda: run
        ) as server:
            under_way = await get(server, "operations?open=true", PARTITION)
            assert [(item["id"], item["progress"]) for item in under_way["operations"]] == [
                ("o4", "2 of 3 replicas")
            ]
            assert (await get(server, "operations?open=true&asset=none", PARTITION))["operations"] == []
            cursor, ids = "", []
            while True:
                page = await get(server, f"operations?asset=a&limit=2&cursor={cursor}", PARTITION)
                ids += [item["id"] for item in page["operations"]]
                cursor = page["cursor"]
                if not cursor:
                    break
            assert ids == ["o4", "o3", "o2", "o1", "o0"]

    asyncio.run(main())


def test_neighbours_are_found_both_ways_up_to_a_distance(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        chain = {"b": ["a"], "c": ["b"], "d": ["c"]}
        assets = [asset("a", "gone"), *(asset(id, targets[0]) for id, targets in chain.items())]
        server.publish(assets, mentions=chain)
        found = (await server.get(f"{ROOT}/graph?around=b&hops=1")).json
        assert [(node["id"], node["hops"]) for node in found["nodes"]] == [("b", 0), ("a", 1), ("c", 1)]
        assert [(edge["source"], edge["target"]) for edge in found["edges"]] == [("b", "a"), ("c", "b")]
        assert not found["cut"]
        found = (await server.get(f"{ROOT}/graph?around=b&hops=2")).json
        assert [node["id"] for node in found["nodes"]] == ["b", "a", "c", "gone", "d"]
        gone = found["nodes"][3]
        assert (gone["type"], gone["message"]) == ("", "intent does not have it")

    play(tmp_path, story)


def test_a_graph_of_many_neighbours_is_cut_and_says_so(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        ids = [f"r{number:03}" for number in range(150)]
        server.publish(
            [asset("hub"), *(asset(id, "hub") for id in ids)], mentions={id: ["hub"] for id in ids}
        )
        found = (await server.get(f"{ROOT}/graph?around=hub&hops=3")).json
        assert found["cut"]
        assert len(found["nodes"]) == 100
        assert len(found["edges"]) == 99
        found = (await server.get(f"{ROOT}/graph?around=r007")).json
        assert not found["cut"]
        assert [node["id"] for node in found["nodes"]] == ["r007", "hub"]

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("target", "status", "error", "parameter"),
    [
        ("why", 400, "HTP103", "asset"),
        ("why?asset=none", 404, "QRY121", None),
        (f"why?asset={quote('../..' + chr(0x202E) + '<script>')}", 404, "QRY121", None),
        ("causes?limit=0", 400, "HTP103", "limit"),
        ("causes?examples=-1", 400, "HTP103", "examples"),
        ("causes?cursor=x", 400, "QRY125", "cursor"),
        ("causes?of=none", 404, "QRY121", None),
        ("audit?cursor={operations}", 400, "QRY126", "cursor"),
        ("operations?asset=b&cursor={operations}", 400, "QRY126", "cursor"),
        ("operations?cursor=W10", 400, "QRY125", "cursor"),
        ("graph?around=none", 404, "QRY121", None),
        ("graph?around=a&hops=0", 400, "HTP103", "hops"),
        ("graph?around=a&hops=6", 400, "HTP103", "hops"),
        ("rollouts/none", 404, "ROL130", None),
        ("rollout-forecast?policy=none", 404, "ROL130", None),
        ("rollout-forecast?policy=none&every_unit=maybe", 400, "HTP103", "every_unit"),
        ("rollout-canary?policy=none", 404, "ROL130", None),
        ("rollout-canary", 400, "HTP103", "policy"),
        ("rollout-history?policy=none", 404, "ROL137", None),
        ("types?at=9", 404, "QRY109", None),
        ("types?at=1", 410, "SDK106", None),
        ("types/none", 404, "QRY122", None),
    ],
)
def test_what_is_asked_wrongly_is_a_problem(
    target: str, status: int, error: str, parameter: str | None, tmp_path: Path
) -> None:
    from lehr.query.list_cursor import list_cursor

    async def story(server: Served) -> None:
        for value in "123":
            server.publish([asset("a", value)])
        server.store.commit([Prune(PARTITION, keep=1, before=float("inf"))])
        cursor = list_cursor("operations of a", PARTITION, 0, "o1")
        answer = await server.get(f"{ROOT}/{target.format(operations=cursor)}")
        problem = answer.json
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status, problem["error"]) == (status, error), problem
        assert problem["title"]
        assert [item["parameter"] for item in problem.get("errors", [])] == ([parameter] if parameter else [])

    play(tmp_path, story)


def test_before_the_first_incarnation_there_is_nothing_to_explain(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        attempt = Attempt(
            at=NOW, partition=PARTITION, publication=Publication.UNREADABLE, sources=(), sequence=0
        )
        server.store.commit([RecordAttempt(attempt)])
        assert (await server.get(f"{ROOT}/causes")).json["causes"] == []
        assert (await server.get(f"{ROOT}/rollouts")).json == []
        assert (await server.get(f"{ROOT}/rollouts/waves")).json["error"] == "HTP136"
        assert (await server.get(f"{ROOT}/types")).status == 200

    play(tmp_path, story)
