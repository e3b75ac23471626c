"""The screens: what each asks for, and the table of all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lehr.page.api import InPartition
from lehr.page.asset_screens import read_asset, read_graph, read_unblock
from lehr.page.diff_screen import read_diff
from lehr.page.push_screens import read_push, read_pushes
from lehr.page.rollout_screens import read_canary, read_forecast, read_rollout

Asked = Mapping[str, str]
"""Parameters of the path and the query."""

Shown = dict[str, Any]

_PAGE = 100
_OF_ONE_CAUSE = 200


class Screen(NamedTuple):
    """One screen of a partition.

    Attributes:
        name: also that of its template.
        path: below that of its partition, with names of parameters in braces.
        read: returns what the template shows. Raises `ProblemError` and `LehrError`.
        query: the names of its parameters besides those of the path.
        title: in the navigation; empty to leave it out there.
        under: the screen that the navigation marks instead.
        still: it is not refreshed automatically, since it makes plugins work.
    """

    name: str
    path: str
    read: Callable[[InPartition, Asked], Awaitable[Shown]]
    query: frozenset[str] = frozenset()
    title: str = ""
    under: str = ""
    still: bool = False


class Navigation(NamedTuple):
    """An item of the navigation."""

    name: str
    title: str
    path: str


async def _overview(api: InPartition, _asked: Asked) -> Shown:
    partition, counts, causes, rollouts, pushes, controls, attempt, run = await asyncio.gather(
        api.get("partition"),
        api.get("counts"),
        api.get("causes", examples=3, limit=6),
        api.get("rollouts"),
        api.get("operations", open="true"),
        api.get("controls", limit=1),
        api.get("attempt"),
        api.installation("run"),
    )
    return {
        "newest": partition["newest"],
        "counts": counts,
        "causes": causes,
        "rollouts": [item for item in rollouts if item["state"] != "idle"],
        "pushes": pushes["operations"],
        "controls": controls["total"],
        "attempt": attempt[0] if attempt else None,
        "run": run,
    }


async def _assets(api: InPartition, asked: Asked) -> Shown:
    page = await api.get(
        "assets",
        filter=asked.get("filter"),
        types=asked.get("types"),
        selector=asked.get("selector"),
        cursor=asked.get("cursor"),
        fields="type",
        limit=_PAGE,
    )
    standings = await _standings(api, [item["id"] for item in page["assets"]])
    known = await api.get("types")
    return {
        "page": page,
        "standings": standings,
        "types": [item["name"] for item in known if item["role"] != "addon"],
        "asked": {name: asked.get(name, "") for name in ("filter", "types", "selector")},
    }


async def _standings(api: InPartition, ids: Sequence[str]) -> dict[str, Any]:
    """The condition of each asset that has one, and since when."""
    found = await api.get("standings", asset=",".join(ids)) if ids else []
    return {item["asset"]: item["condition"] | {"since": item["since"]} for item in found}


async def _causes(api: InPartition, asked: Asked) -> Shown:
    of = asked.get("of", "")
    examples = _OF_ONE_CAUSE if of else 20
    found = await api.get("causes", of=of, examples=examples, limit=50, cursor=asked.get("cursor"))
    return {"causes": found, "of": of}


async def _controls(api: InPartition, asked: Asked) -> Shown:
    page, causes = await asyncio.gather(
        api.get("controls", limit=_PAGE, cursor=asked.get("cursor")),
        api.get("causes", limit=1000, examples=0),
    )
    return {"page": page, "held": {item["root"]: item["count"] for item in causes["causes"]}}


async def _rollouts(api: InPartition, _asked: Asked) -> Shown:
    return {"rollouts": await api.get("rollouts")}


async def _history(api: InPartition, asked: Asked) -> Shown:
    versions = await api.get("history", limit=_PAGE, before=asked.get("before"))
    oldest = versions[-1]["incarnation"] if len(versions) >= _PAGE else None
    return {"versions": versions, "before": oldest["sequence"] if oldest else ""}


async def _compare(api: InPartition, asked: Asked) -> Shown:
    found = await api.get("compare", **{"from": asked.get("from"), "to": asked.get("to")})
    return {"compared": found, "asked": {name: asked.get(name, "") for name in ("from", "to")}}


async def _audit(api: InPartition, asked: Asked) -> Shown:
    return {"page": await api.get("audit", limit=_PAGE, cursor=asked.get("cursor"))}


SCREENS: tuple[Screen, ...] = (
    Screen("overview", "", _overview, title="Overview"),
    Screen("causes", "/causes", _causes, frozenset({"of", "cursor"}), "Causes"),
    Screen("assets", "/assets", _assets, frozenset({"filter", "types", "selector", "cursor"}), "Assets"),
    Screen("asset", "/assets/{id}", read_asset, frozenset({"at"}), under="assets"),
    Screen("diff", "/diff/{id}", read_diff, under="assets"),
    Screen("unblock", "/unblock/{id}", read_unblock, under="assets", still=True),
    Screen("graph", "/graph/{id}", read_graph, frozenset({"hops"}), under="assets"),
    Screen("rollouts", "/rollouts", _rollouts, title="Rollouts"),
    Screen("rollout", "/rollouts/{id}", read_rollout, under="rollouts"),
    Screen("canary", "/canary/{id}", read_canary, under="rollouts"),
    Screen("forecast", "/forecast/{id}", read_forecast, frozenset({"every_unit"}), under="rollouts"),
    Screen("history", "/history", _history, frozenset({"before"}), "History"),
    Screen("compare", "/compare", _compare, frozenset({"from", "to"}), under="history"),
    Screen("pushes", "/pushes", read_pushes, frozenset({"asset", "cursor"}), "Pushes"),
    Screen("push", "/pushes/{id}", read_push, under="pushes"),
    Screen("controls", "/controls", _controls, frozenset({"cursor"}), "Controls"),
    Screen("audit", "/audit", _audit, frozenset({"cursor"}), "Audit"),
)

NAVIGATION = tuple(Navigation(item.name, item.title, item.path) for item in SCREENS if item.title)
