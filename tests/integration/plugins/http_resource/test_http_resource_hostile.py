"""What the plugin `lehr.HttpResource` does when a server misbehaves, and when others change its resources."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError, WaitingError
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.diff import NO_DIFF, Diff, Goal, Target
from lehr.model.operation import Outcome, Progress, Result
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.http_resource.payload import HTTP_RESOURCE, TYPES, HttpResource, Ready
from lehr.plugins.http_resource.plugin import HttpResourcePlugin
from lehr.sdk.plugin import Found
from lehr.sdk.secrets import DIFFERS
from lehr.testing.plugins import FixedReader, FixedSecrets, push_of, target_of
from tests.codes import raises
from tests.rest_api import Api, Handler, serving

REGISTRY = Registry(TYPES)
SECRETS = {"env:TOKEN": "hunter2-hunter2", "env:PASSWORD": "correct-horse-battery"}
LAMP = "/things/lamp"
PASSWORD = {"/password": Secret("env:PASSWORD")}


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as found:
        yield found


class World:
    """A plugin, its asset, and what Lehr keeps about it."""

    def __init__(self, api: Api, **fields: Any) -> None:
        self.api = api
        self.handle = ""
        self.lost = ""
        self.goal = Goal.PRESENT
        self.secrets = dict(SECRETS)
        self.change(**fields)

    def change(self, **fields: Any) -> None:
        self.asset: Asset = make_asset(AssetId("shop/lamp"), HTTP_RESOURCE, HttpResource(**fields), {})

    def target(self) -> Target:
        return replace(target_of(self.asset, self.goal), handle=self.handle, lost=self.lost)

    def plugin(self) -> HttpResourcePlugin:
        return HttpResourcePlugin(
            SystemClock(), secrets=FixedSecrets(self.secrets), request_seconds=0.5, settle_seconds=0.2
        )

    def diff(self) -> Diff:
        found = asyncio.run(self.plugin().diff(self.target(), FixedReader([self.asset], REGISTRY)))
        self.handle = self.handle if found.handle is UNSET else found.handle
        self.lost = ""
        return found

    def push(self, approved: Diff = NO_DIFF, id: str = "op1") -> Outcome:
        push = push_of(self.target(), id, diff=approved)
        reader = FixedReader([self.asset], REGISTRY)
        outcome = asyncio.run(self.plugin().push(self.target(), reader, push))
        self.handle = self.handle if outcome.handle is UNSET else outcome.handle
        self.lost = id if outcome.result is Result.UNKNOWN else ""
        return outcome

    def apply(self) -> None:
        assert self.push(self.diff()).result is Result.DONE
        assert self.diff().changes == ()


def at_url(api: Api, **fields: Any) -> World:
    return World(api, **{"url": api.base + LAMP, "body": {"name": "lamp", "size": 1}, **fields})


def in_collection(api: Api, **fields: Any) -> World:
    known = {"collection": f"{api.base}/things", "body": {"name": "lamp", "size": 1}, "match": "/name"}
    return World(api, **{**known, **fields})


def on(method: str, act: Any) -> Any:
    """Act on requests with this method only."""
    return lambda handler: handler.command == method and bool(act(handler))


def answering(status: int, found: Any = None, **headers: str) -> Any:
    def answer(handler: Handler) -> bool:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        handler.answer(status, found, named)
        return True

    return answer


def paths(found: Diff) -> list[str]:
    return [change.path for change in found.changes]


def lamps(api: Api) -> list[str]:
    return [path for path, item in api.items.items() if item.get("name") == "lamp"]


# --- reading ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trouble", "code", "kind"),
    [
        (lambda handler: handler.hang(0.8), "RES115", TransientError),
        (Handler.reset, "RES115", TransientError),
        (answering(200, b"<html>"), "RES101", TransientError),
        (answering(200, b"[" * 100_000), "RES101", TransientError),
        (answering(200, b"\xff\xfe"), "RES101", TransientError),
        (answering(200, [1]), "RES102", TransientError),
        (answering(200, b'"' + b"x" * (1 << 20) + b'"'), "RES114", StalledError),
        (answering(500, {"message": "oh"}), "RES103", TransientError),
        (answering(502), "RES103", TransientError),
        (answering(429), "RES107", TransientError),
        (answering(408), "RES108", TransientError),
        (answering(401), "RES109", StalledError),
        (answering(403), "RES109", StalledError),
        (answering(302, Location="http://elsewhere.test/"), "RES110", StalledError),
        (answering(400), "RES111", StalledError),
    ],
)
def test_a_look_fails_with_what_to_do(trouble: Any, code: str, kind: Any, api: Api) -> None:
    world = at_url(api)
    api.trouble = trouble
    with raises(code, kind):
        world.diff()
    with raises(code, kind):
        world.push()
    assert api.writes() == []


def test_a_server_that_is_not_there_is_waited_for() -> None:
    with serving() as api:
        world = at_url(api)
    with raises("RES115", TransientError):
        world.push()


@pytest.mark.parametrize(("asked", "wait"), [("7", 7), ("86400", 600)])
def test_the_server_decides_when_it_is_asked_again_within_limits(asked: str, wait: int, api: Api) -> None:
    api.trouble = answering(429, None, Retry_After=asked)
    with raises("RES106", WaitingError) as caught:
        at_url(api).diff()
    assert caught.value.until == pytest.approx(time.time() + wait, abs=2)


def test_a_server_cannot_write_to_a_terminal_or_repeat_a_secret(api: Api) -> None:
    words = f"no \x1b[31m {SECRETS['env:TOKEN']} \n" + "x" * 5000
    api.trouble = answering(422, {"error": {"message": words}})
    with raises("RES111", StalledError) as caught:
        at_url(api, credentials=Secret("env:TOKEN")).diff()
    assert caught.value.why.startswith("no  [31m [secret] | xxx")
    assert len(caught.value.why) < 300


def test_a_credential_that_no_header_can_hold_is_not_shown(api: Api) -> None:
    world = at_url(api, credentials=Secret("env:TOKEN"))
    world.secrets["env:TOKEN"] = "two\nlines"
    with raises("RES113", StalledError) as caught:
        world.diff()
    assert "two" not in str(caught.value)
    assert api.requests == []


# --- writing ---------------------------------------------------------------------


def test_writes_depend_on_what_was_compared(api: Api) -> None:
    world = at_url(api, credentials=Secret("env:TOKEN"), headers={"X-Team": "shop"})
    world.apply()
    world.change(url=api.base + LAMP, body={"name": "lamp", "size": 2})
    world.apply()
    world.goal = Goal.ABSENT
    world.apply()
    assert api.writes() == [f"PUT {LAMP}", f"PUT {LAMP}", f"DELETE {LAMP}"]
    writes = [seen for seen in api.seen if "if-match" in seen or "if-none-match" in seen]
    assert [seen.get("if-match") for seen in writes] == [None, '"1"', '"2"']
    assert [seen.get("if-none-match") for seen in writes] == ["*", None, None]
    assert writes[0]["authorization"] == f"Bearer {SECRETS['env:TOKEN']}"
    assert writes[0]["x-team"] == "shop"


def test_a_write_that_comes_too_late_changes_nothing(api: Api) -> None:
    world = at_url(api)
    world.apply()
    world.change(url=api.base + LAMP, body={"size": 2})

    def overtake(handler: Handler) -> bool:
        api.put(LAMP, {"name": "lamp", "size": 3})
        return False

    api.trouble = on("PUT", overtake)
    with raises("RES104", TransientError):
        world.push()
    assert api.items[LAMP]["size"] == 3


def test_a_resource_that_another_has_just_created_is_not_overwritten(api: Api) -> None:
    world = at_url(api)

    def overtake(handler: Handler) -> bool:
        api.put(LAMP, {"name": "lamp", "size": 3})
        return False

    api.trouble = on("PUT", overtake)
    with raises("RES104", TransientError):
        world.push()
    assert api.items[LAMP]["size"] == 3


@pytest.mark.parametrize(
    "after",
    [answering(500, {"message": "oh"}), answering(504), Handler.reset, lambda handler: handler.hang(0.8)],
    ids=["500", "504", "reset", "hang"],
)
@pytest.mark.parametrize("make", [at_url, in_collection])
def test_a_write_without_an_answer_is_looked_up(make: Any, after: Any, api: Api) -> None:
    world = make(api)
    api.after = after
    assert world.push().result is Result.UNKNOWN
    api.after = None
    assert world.diff().changes == ()
    assert len(lamps(api)) == 1
    assert len(api.writes()) == 1


def test_a_resource_that_cannot_be_found_again_is_never_created_twice(api: Api) -> None:
    world = in_collection(api, match=None)
    api.after = Handler.reset
    assert world.push(id="op7").result is Result.UNKNOWN
    api.after = None
    assert api.seen[-1]["idempotency-key"] == "op7"
    for _ in range(2):
        with raises("RES116", StalledError, match="may have created"):
            world.diff()
    with raises("RES116", StalledError):
        world.push()
    assert len(lamps(api)) == 1
    body = {"name": "lamp", "size": 2}
    world.change(collection=f"{api.base}/things", body=body, import_=api.base + lamps(api)[0])
    world.apply()
    assert len(lamps(api)) == 1
    assert api.items[lamps(api)[0]]["size"] == 2


def test_a_server_that_lies_about_a_creation_is_not_asked_twice(api: Api) -> None:
    world = in_collection(api)
    api.trouble = on("POST", answering(201, {}, Location="/things/t99"))
    outcome = world.push()
    assert outcome.result is Result.STALLED
    assert "not there" in outcome.message
    assert json.loads(world.handle) == {"url": f"{api.base}/things/t99"}
    world = at_url(api)
    api.trouble = on("PUT", answering(201))
    assert world.push().result is Result.FAILED


def test_a_server_that_keeps_something_else_has_not_done_it(api: Api) -> None:
    world = at_url(api)

    def keep(handler: Handler) -> bool:
        api.put(LAMP, {"name": "LAMP", "size": 1})
        handler.answer(200, {})
        return True

    api.trouble = on("PUT", keep)
    outcome = world.push()
    assert outcome.result is Result.FAILED
    assert "body/name" in outcome.message


def test_a_server_that_lies_about_a_deletion_is_found_out(api: Api) -> None:
    world = at_url(api)
    world.apply()
    world.goal = Goal.ABSENT
    api.trouble = on("DELETE", answering(204))
    with raises("RES123", TransientError):
        world.push()


def test_a_resource_that_was_deleted_in_the_meantime_is_absent(api: Api) -> None:
    world = at_url(api)
    world.apply()
    world.goal = Goal.ABSENT
    api.etags = False
    api.trouble = on("DELETE", lambda handler: api.delete(LAMP))
    assert world.push().result is Result.DONE


@pytest.mark.parametrize("link", ["http://elsewhere.test/things/t1", "http://user@127.0.0.1/things/t1"])
def test_a_resource_on_another_server_is_not_followed(link: str, api: Api) -> None:
    world = in_collection(api, match=None, credentials=Secret("env:TOKEN"))
    api.trouble = on("POST", answering(201, {}, Location=link))
    outcome = world.push()
    assert outcome.result is Result.UNKNOWN
    assert world.handle == ""


@pytest.mark.parametrize("id", ["..", ".", "", None, True, ["t1"], {"a": 1}])
def test_an_id_that_leads_elsewhere_is_not_used(id: object, api: Api) -> None:
    world = in_collection(api, match=None)
    api.trouble = on("POST", answering(201, {"id": id}))
    assert world.push().result is Result.UNKNOWN
    assert api.writes() == ["POST /things"]


def test_an_id_is_one_part_of_a_path(api: Api) -> None:
    world = in_collection(api, match=None)
    api.put("/things/a%2F..%2Fb%3F", {"name": "lamp", "size": 1})
    api.trouble = on("POST", answering(201, {"id": "a/../b?"}))
    assert world.push().result is Result.DONE
    assert json.loads(world.handle)["url"] == f"{api.base}/things/a%2F..%2Fb%3F"


# --- what others do --------------------------------------------------------------


def test_a_resource_is_found_on_any_page_also_if_another_has_made_it(api: Api) -> None:
    for number in range(7):
        api.made({"name": f"chair {number}"})
    api.made({"name": "lamp", "size": 1})
    world = in_collection(api)
    assert world.diff().changes == ()
    assert json.loads(world.handle) == {"url": f"{api.base}/things/t8"}
    assert sum(request.startswith("GET /things?from") for request in api.requests) == 3


def test_pages_may_be_linked_in_the_body(api: Api) -> None:
    pages = {
        "/things": {"data": {"items": [{"name": "chair"}]}, "page": {"next": "/things?page=2"}},
        "/things?page=2": {"data": {"items": [{"name": "lamp", "key": "k1"}]}, "page": {"next": None}},
        "/things/k1": {"name": "lamp", "size": 1},
    }
    api.trouble = lambda handler: bool(answering(200, pages[handler.path])(handler))
    world = in_collection(api, items="/data/items", next="/page/next", id="/key")
    assert world.diff().changes == ()
    assert json.loads(world.handle) == {"url": f"{api.base}/things/k1"}


@pytest.mark.parametrize(
    ("link", "code"),
    [("/things", "RES119"), ("http://elsewhere.test/things", "RES120"), ("//elsewhere.test/", "RES120")],
)
def test_pages_lead_to_an_end_on_the_same_server(link: str, code: str, api: Api) -> None:
    api.trouble = answering(200, [], Link=f'<{link}>; rel="next"')
    with raises(code, StalledError):
        in_collection(api).diff()
    assert len(api.requests) == 1


def test_pages_that_never_end_are_given_up(api: Api) -> None:
    def more(handler: Handler) -> bool:
        handler.answer(200, [], {"Link": f"</things?page={len(api.requests)}>; rel=next"})
        return True

    api.trouble = more
    with raises("RES119", StalledError):
        in_collection(api).diff()
    assert len(api.requests) == 100


def test_a_collection_without_a_list_is_not_understood(api: Api) -> None:
    api.trouble = answering(200, {"data": []})
    with raises("RES118", TransientError):
        in_collection(api).diff()


def test_two_resources_with_the_same_name_are_not_guessed_between(api: Api) -> None:
    for _ in range(2):
        api.made({"name": "lamp", "size": 1})
    with raises("RES117", StalledError):
        in_collection(api).diff()


def test_a_resource_whose_id_was_changed_by_hand_is_found_by_its_field(api: Api) -> None:
    world = in_collection(api)
    world.apply()
    [path] = lamps(api)
    api.put("/things/moved", {**api.items[path], "id": "moved"})
    api.delete(path)
    assert world.diff().changes == ()
    assert json.loads(world.handle) == {"url": f"{api.base}/things/moved"}


@pytest.mark.parametrize("make", [at_url, in_collection, lambda api: in_collection(api, match=None)])
def test_a_resource_that_was_deleted_by_hand_is_created_again(make: Any, api: Api) -> None:
    world = make(api)
    world.apply()
    api.delete(lamps(api)[0])
    assert paths(world.diff()) == ["resource", "body/name", "body/size"]
    world.apply()
    assert len(lamps(api)) == 1


def test_a_resource_may_be_renamed(api: Api) -> None:
    world = in_collection(api)
    world.apply()
    world.change(collection=f"{api.base}/things", match="/name", body={"name": "light"})
    assert paths(world.diff()) == ["body/name"]
    world.apply()
    assert len(api.items) == 1


def test_a_collection_on_another_server_is_another_resource(api: Api) -> None:
    world = in_collection(api)
    world.handle = json.dumps({"url": "http://127.0.0.1:1/things/t1"})
    with raises("RES121", StalledError):
        world.diff()


def test_fields_that_are_not_declared_are_left_alone(api: Api) -> None:
    api.put(LAMP, {"name": "lamp", "size": 1, "owner": "ann", "labels": {"a": 1, "b": 2}})
    world = at_url(api, body={"size": 1, "labels": {"a": 1}, "note": None})
    assert world.diff().changes == ()
    world.change(url=api.base + LAMP, body={"size": 2}, update="merge-patch")
    world.apply()
    assert api.items[LAMP]["owner"] == "ann"
    assert api.seen[-3]["content-type"] == "application/merge-patch+json"


# --- discovery -------------------------------------------------------------------


def drafts(api: Api, *query: str) -> list[Found]:
    async def collect() -> list[Found]:
        plugin = World(api, url=api.base + LAMP).plugin()
        return [draft async for draft in plugin.discover(query, Partition("test"))]

    return asyncio.run(collect())


def test_resources_of_all_pages_are_drafted_with_all_their_fields(api: Api) -> None:
    for number in range(3):
        api.made({"name": f"chair {number}", "size": number})
    found = drafts(api, f"{api.base}/things")
    assert [draft.id for draft in found] == ["t1", "t2", "t3"]
    assert found[2].payload == {
        "collection": f"{api.base}/things",
        "import": f"{api.base}/things/t3",
        "body": {"created": "2026-01-01", "name": "chair 2", "size": 2},
    }


def test_a_draft_that_cannot_be_an_asset_has_an_obstacle(api: Api) -> None:
    for item in ({"name": "chair"}, {"name": "lamp"}, {"name": "lamp"}, {"size": 3}):
        api.made(item)
    found = drafts(api, f"{api.base}/things", "match=/name", "fields=name,size")
    assert [bool(draft.obstacle) for draft in found] == [False, True, True, True]
    assert [draft.id for draft in found[:3]] == ["chair", "lamp", "lamp-2"]
    assert found[0].payload["body"] == {"name": "chair"}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (("things",), "RES131"),
        (("http://example.org/things", "credentials=env:TOKEN"), "RES131"),
        (("http://127.0.0.1:1/things", "credentials=hunter2"), "RES131"),
        (("http://127.0.0.1:1/things", "match=name"), "RES130"),
        (("http://127.0.0.1:1/things", "body={}"), "RES130"),
        (("http://127.0.0.1:1/things", "match"), "RES130"),
    ],
)
def test_a_query_that_is_not_understood_is_refused(query: tuple[str, ...], code: str, api: Api) -> None:
    with raises(code, StalledError) as caught:
        drafts(api, *query)
    assert "hunter2" not in str(caught.value)


# --- replacing, waiting, secrets -------------------------------------------------


@pytest.mark.parametrize("make", [at_url, in_collection])
def test_a_field_that_cannot_change_takes_a_new_resource_and_approval(make: Any, api: Api) -> None:
    fixed = {"immutable": ["/zone"]}
    world = make(api, body={"name": "lamp", "zone": {"id": "a"}}, **fixed)
    world.apply()
    place = {key: value for key, value in (("url", api.base + LAMP),) if make is at_url}
    place |= {} if place else {"collection": f"{api.base}/things", "match": "/name"}
    world.change(**place, body={"name": "lamp", "zone": {"id": "b"}}, **fixed)
    found = world.diff()
    assert paths(found) == ["resource", "body/zone/id"]
    assert found.effects.destructive
    with raises("RES126", TransientError):
        world.push()
    assert not [write for write in api.writes() if write.startswith("DELETE")]
    assert world.push(found).result is Result.DONE
    assert world.diff().changes == ()
    assert len(lamps(api)) == 1


READY = Ready(field="/status", in_=["active"], failed=["error"], within_seconds=5.0)


def test_a_resource_that_takes_time_is_waited_for(api: Api) -> None:
    world = at_url(api, ready=READY)
    api.extra["status"] = "creating"
    timer = threading.Timer(0.3, lambda: api.extra.update(status="active"))
    timer.start()
    assert world.push().result is Result.DONE
    timer.join()
    api.extra["status"] = "updating"
    found = world.diff()
    assert paths(found) == ["ready"]
    assert found.look_again


def test_a_resource_that_fails_stalls_with_its_status(api: Api) -> None:
    world = at_url(api, ready=READY)
    api.extra["status"] = "error"
    outcome = world.push()
    assert outcome.result is Result.STALLED
    assert "'error'" in outcome.message
    with raises("RES127", StalledError):
        world.diff()


def test_a_secret_that_the_server_shows_is_compared_and_not_shown(api: Api) -> None:
    world = at_url(api, secrets=PASSWORD)
    world.apply()
    assert api.items[LAMP]["password"] == SECRETS["env:PASSWORD"]
    assert world.handle == ""
    api.put(LAMP, {**api.items[LAMP], "password": "changed"})
    [change] = world.diff().changes
    assert (change.path, change.observed) == ("body/password", DIFFERS)
    world.apply()


@pytest.mark.parametrize("shown", [None, "", "********"])
def test_a_secret_that_the_server_hides_is_sent_once_for_each_version(shown: str | None, api: Api) -> None:
    api.hidden = {"password"}
    if shown is not None:
        api.hidden = set()
        api.trouble = on("GET", lambda handler: _mask(api, handler, shown))
    world = at_url(api, secrets=PASSWORD)
    world.apply()
    assert "sent" in json.loads(world.handle)
    assert SECRETS["env:PASSWORD"] not in world.handle
    newer = {"/password": Secret("env:PASSWORD", version="2")}
    world.change(url=api.base + LAMP, body={"name": "lamp", "size": 1}, secrets=newer)
    assert paths(world.diff()) == ["secrets"]
    world.apply()
    world.handle = ""
    assert paths(world.diff()) == ["secrets"]


def _mask(api: Api, handler: Handler, shown: str) -> bool:
    if LAMP in api.items:
        handler.answer(200, {**api.items[LAMP], "password": shown})
    return LAMP in api.items


def test_a_cancelled_write_runs_until_it_has_its_answer(api: Api) -> None:
    world = at_url(api)
    written = threading.Event()

    def answer_late(handler: Handler) -> bool:
        written.set()
        return not handler.hang(0.2)

    api.after = answer_late

    async def main() -> list[Progress]:
        plugin, push = world.plugin(), push_of(world.target())
        task = asyncio.ensure_future(plugin.push(world.target(), FixedReader([world.asset], REGISTRY), push))
        await asyncio.get_running_loop().run_in_executor(None, written.wait, 5.0)
        task.cancel()
        await asyncio.wait({task})
        during = await plugin.status(push.operation)
        await asyncio.sleep(0.7)
        after = await plugin.status(push.operation)
        recent = replace(push.operation, started_at=time.time())
        answers = [during, after, await plugin.status(recent)]
        await plugin.close()
        return answers

    assert asyncio.run(main()) == [Progress.RUNNING, Progress.ENDED, Progress.RUNNING]


def test_a_write_without_an_answer_may_still_be_carried_out_for_a_while(api: Api) -> None:
    class Later(SystemClock):
        passed = 0.0

        def monotonic(self) -> float:
            return super().monotonic() + self.passed

    world, clock = in_collection(api), Later()
    api.trouble = on("POST", Handler.reset)

    async def main() -> list[Progress]:
        plugin, push = HttpResourcePlugin(clock, request_seconds=100.0), push_of(world.target())
        outcome = await plugin.push(world.target(), FixedReader([world.asset], REGISTRY), push)
        assert outcome.result is Result.UNKNOWN
        before = await plugin.status(push.operation)
        clock.passed = 101.0
        return [before, await plugin.status(push.operation)]

    assert asyncio.run(main()) == [Progress.RUNNING, Progress.ENDED]
