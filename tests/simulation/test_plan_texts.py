"""Texts of a plan are those of the content that the turn would push, and come from nowhere but the plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import structlog

from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId
from lehr.model.control import ControlKind
from lehr.model.diff import Target
from lehr.sdk.plugin import MOST_TEXT, Reader, TextChange
from lehr.store.sqlite import SqliteStore
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import Thing, thing
from tests.simulation.dry_runs import Controls, planner
from tests.world import Plane, World, WorldPlugin

Answer = Callable[[str | None, str], Sequence[TextChange]]


def shown(observed: str | None, intended: str) -> Sequence[TextChange]:
    return (TextChange("value", observed, intended),)


class WithTexts(WorldPlugin):
    """Shows the value as text.

    Attributes:
        asked: the targets.
    """

    def __init__(self, world: World, clock: VirtualClock, answer: Answer = shown) -> None:
        super().__init__(world, clock)
        self.answer = answer
        self.asked: list[Target] = []

    async def texts(self, target: Target, read: Reader) -> Sequence[TextChange]:
        self.asked.append(target)
        payload = read.payload(target.id, Thing)
        others = (read.payload(AssetId(id), Thing).value for id in payload.reads)
        return self.answer(self.world.values.get(target.id), "\n".join([payload.value, *others]))


def texts(
    folder: Path,
    intent: list[Asset],
    world: World,
    *,
    answer: Answer = shown,
    before: Sequence[Asset] = (),
    controls: Callable[[Controls], None] = lambda given: None,
) -> tuple[dict[str, Sequence[TextChange]], list[Target]]:
    async def main() -> tuple[dict[str, Sequence[TextChange]], list[Target]]:
        clock = VirtualClock()
        if before:
            plane = Plane(folder, world, clock)
            await plane.start()
            await plane.publish(*before)
            await plane.settle()
            await plane.kill()
        store = SqliteStore(folder / "state.sqlite")
        controls(Controls(store, clock))
        plugin = WithTexts(world, clock, answer)
        made = planner(store, plugin, clock, intent)
        planned = await made.plan()
        assert not plugin.asked, "the plan itself asks for no text"
        found = {str(item.id): await made.texts(item) for item in planned}
        store.close()
        return found, plugin.asked

    return run(main, seed=1)


def test_only_what_differs_is_asked_for(tmp_path: Path) -> None:
    world = World()
    world.values["same"] = "1"
    found, asked = texts(tmp_path, [thing("new", "1"), thing("same", "1")], world)
    assert found == {"new": [TextChange("value", None, "1")], "same": ()}
    assert [target.id for target in asked] == ["new"]


def test_a_pinned_asset_shows_what_it_is_pinned_to(tmp_path: Path) -> None:
    world = World()

    def pinned(given: Controls) -> None:
        given.give(ControlKind.PIN, "a", incarnation=1)
        world.values["a"] = "by hand"

    found, [target] = texts(tmp_path, [thing("a", "2")], world, before=[thing("a", "1")], controls=pinned)
    assert found == {"a": [TextChange("value", "by hand", "1")]}
    assert target.incarnation == 1


def test_other_assets_are_read_for_it(tmp_path: Path) -> None:
    found, _ = texts(tmp_path, [thing("a", "1", reads=["b"]), thing("b", "2")], World())
    assert found["a"] == [TextChange("value", None, "1\n2")]


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\n" + "x" * 64,
        "user = app\nDB_PASSWORD=hunter2\n",
        "Environment=DB_PASSWORD=hunter2\n",
        "- password: hunter2\n",
        '{"password": "hunter2"}\n',
        "x" * (MOST_TEXT + 1),
        "x" * 5000,
    ],
    ids=lambda text: text[:20].strip(),
)
@pytest.mark.parametrize("new", [False, True], ids=["observed", "intended"])
def test_a_text_that_may_be_a_secret_is_hidden_whichever_side_has_it(
    text: str, new: bool, tmp_path: Path
) -> None:
    def answer(observed: str | None, intended: str) -> Sequence[TextChange]:
        return (TextChange("value", "harmless", text) if new else TextChange("value", text, "harmless"),)

    found, _ = texts(tmp_path, [thing("a", "1")], World(), answer=answer)
    [change] = found["a"]
    assert change.observed is change.intended is None
    assert change.hidden


def test_only_texts_of_changes_that_differ_are_shown(tmp_path: Path) -> None:
    def answer(observed: str | None, intended: str) -> Sequence[TextChange]:
        return (TextChange("another", "a", "b"), TextChange("value", "same", "same"))

    found, _ = texts(tmp_path, [thing("a", "1")], World(), answer=answer)
    assert found == {"a": []}


@pytest.mark.parametrize("error", [StalledError("no"), ValueError("no"), SystemExit(1)])
def test_a_plugin_that_fails_has_no_texts_and_is_logged(error: BaseException, tmp_path: Path) -> None:
    def answer(observed: str | None, intended: str) -> Sequence[TextChange]:
        raise error

    with structlog.testing.capture_logs() as logs:
        found, _ = texts(tmp_path, [thing("a", "1")], World(), answer=answer)
    assert found == {"a": ()}
    assert [line["asset"] for line in logs] == ["a"]
