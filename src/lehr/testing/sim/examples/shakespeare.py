"""`shakespeare`: a service in clusters behind balancers, over a database, through a season.

Generators, service model and types are those of the example. The effects of a change are worked out
as the plugins of its types do, from what production holds.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from lehr.base.digest import digest_bytes
from lehr.control.messages import Approve, Freeze, Lift, Pin
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import Effects, Goal, Target
from lehr.plugins.balancer.intent import plan_for, units
from lehr.plugins.balancer.payload import LOAD_BALANCER
from lehr.plugins.command.payload import COMMAND, Command
from lehr.plugins.database.payload import DATABASE_SCHEMA, DatabaseSchema
from lehr.plugins.file.payload import FILE, File
from lehr.plugins.process.payload import PROCESS
from lehr.plugins.process.payload import Process as Job
from lehr.sdk.plugin import Reader
from lehr.testing.sim.plans.scenario import Drift, Editor, Order, Scenario, Step, workspace
from lehr.testing.sim.simulated_type import SimulatedType

_CLUSTERS = """\
  eu: {replicas: 3, ports: 8410}
  us: {replicas: 2, ports: 8430}
"""
_SPEAKER = "      line: {type: text, nullable: false}\n"


def _file(target: Target, read: Reader) -> Any:
    payload = read.payload(target.id, File)
    return {"path": payload.path, "content": digest_bytes((payload.content or "").encode())}


def _command(target: Target, read: Reader) -> Any:
    """It only matters whether the rows are there: those of a newer schema also do for an older one."""
    return {"applied": read.payload(target.id, Command).apply[:2]}


def _job(target: Target, read: Reader) -> Any:
    payload = read.payload(target.id, Job)
    others = [read.asset(AssetId(id)) for id in payload.restart_on]
    return {
        "command": payload.command,
        "environment": payload.environment,
        "replicas": payload.replicas,
        "version": payload.version,
        "restart_on": [other and other.digest for other in others],
    }


def _job_effects(target: Target, read: Reader, intended: Any, observed: Any) -> Effects:
    before, after = _present(observed), _present(intended)
    rolls = before and {**before, "replicas": 0} != {**after, "replicas": 0}
    return Effects(
        capacity=after.get("replicas", 0) - before.get("replicas", 0),
        version_from=(before["version"] or None) if rolls else None,
        version_to=after.get("version") or None,
        disruptive=bool(rolls) and before["replicas"] == 1,
    )


def _balancer(target: Target, read: Reader) -> Any:
    plan = plan_for(replace(target, goal=Goal.PRESENT), read, "")
    pools = {pool.name: [pool.weight, list(pool.endpoints)] for pool in plan.pools.values()}
    return {"listen": plan.balancer.listen, "pools": pools}


def _balancer_effects(target: Target, read: Reader, intended: Any, observed: Any) -> Effects:
    behind = units(plan_for(replace(target, goal=Goal.PRESENT), read, ""), read, target.id)
    before, after = (_present(value).get("pools", {}) for value in (observed, intended))
    return Effects(capacity=_served(after, behind) - _served(before, behind))


def _served(pools: Mapping[str, Any], behind: Mapping[str, int]) -> int:
    """Replicas that get requests through these pools."""
    return sum(behind.get(name, len(endpoints)) for name, (weight, endpoints) in pools.items() if weight)


def _schema(target: Target, read: Reader) -> Any:
    payload = read.payload(target.id, DatabaseSchema)
    tables = {
        name: {column: item.type for column, item in table.columns.items()}
        for name, table in payload.tables.items()
    }
    return {"version": payload.version, **tables}


def _schema_effects(target: Target, read: Reader, intended: Any, observed: Any) -> Effects:
    before, after = _present(observed), _present(intended)
    columns = before.get("lines", {}).keys() - after.get("lines", {}).keys()
    return Effects(
        version_from=str(before.get("version", 0)),
        version_to=str(after.get("version", 0)),
        destructive=bool(columns),
    )


def _present(value: Any) -> Mapping[str, Any]:
    """The serving part of a value of production: nothing of what is absent, half made, drained or fenced."""
    if not isinstance(value, dict) or value.keys() <= {str(goal) for goal in Goal}:
        return {}
    return value


KINDS = (
    SimulatedType(FILE, _file),
    SimulatedType(COMMAND, _command),
    SimulatedType(PROCESS, _job, _job_effects),
    SimulatedType(LOAD_BALANCER, _balancer, _balancer_effects),
    SimulatedType(DATABASE_SCHEMA, _schema, _schema_effects),
)
"""Production of the example's types."""


@functools.cache
def shakespeare() -> Scenario:
    """The scenario."""
    editor = Editor(workspace("shakespeare"))
    return Scenario(
        "shakespeare",
        Partition("shakespeare"),
        KINDS,
        (*_growing(editor), *_versions(editor), *_clusters(editor), *_guarded(editor)),
        ("frontend.yaml", "schema.yaml"),
    )


def _growing(editor: Editor) -> list[Step]:
    steps: list[Step] = [editor.save("everything, from nothing")]
    editor.replace("frontend.yaml", "eu: {replicas: 3", "eu: {replicas: 1")
    steps.append(editor.save("eu shrinks to one replica"))
    editor.replace("frontend.yaml", "eu: {replicas: 1", "eu: {replicas: 3")
    steps.append(editor.save("eu grows to three replicas again"))
    drift = Drift("an operator stops all of us by hand", "frontend/us/job", None)
    return [*steps, drift]


def _versions(editor: Editor) -> list[Step]:
    editor.replace("schema.yaml", _SPEAKER, f"{_SPEAKER}      speaker: {{type: text}}\n")
    editor.replace("schema.yaml", "version: 1", "version: 2")
    editor.replace("frontend.yaml", "version: v1", "version: v2")
    editor.replace("frontend.yaml", "schema: 1", "schema: 2")
    update = editor.save("v2, with the column that it needs")
    pin = Pin(selector="frontend/*/job", reason="v2 is bad")
    editor.replace("frontend.yaml", "version: v2", "version: v1")
    editor.replace("frontend.yaml", "schema: 2", "schema: 1")
    return [
        update,
        Order("v2 is rolled back", (pin,)),
        editor.save("intent asks for v1 again"),
        Order("the rollback's pin is taken away", (Lift(kind="pin", selector="frontend/*/job"),)),
    ]


def _clusters(editor: Editor) -> list[Step]:
    asia = "  asia: {replicas: 2, ports: 8450}\n"
    editor.replace("frontend.yaml", _CLUSTERS, _CLUSTERS + asia)
    steps: list[Step] = [editor.save("a third cluster")]
    us = "  us: {replicas: 2, ports: 8430}\n"
    editor.replace("frontend.yaml", us, "  us: {replicas: 2, ports: 8430, turndown: moved to asia}\n")
    steps.append(editor.save("us is turned down"))
    editor.replace("frontend.yaml", "  us: {replicas: 2, ports: 8430, turndown: moved to asia}\n", "")
    return [*steps, editor.save("the lines of us are deleted")]


def _guarded(editor: Editor) -> list[Step]:
    freeze = Order("a freeze", (Freeze(selector="frontend/*", reason="launch"),))
    editor.replace("frontend.yaml", "THEATRE: the Globe", "THEATRE: the Rose")
    renamed = editor.save("another environment, while frozen")
    thaw = Order("the freeze is lifted", (Lift(kind="freeze", selector="frontend/*"),))
    editor.replace("schema.yaml", "      speaker: {type: text}\n", "")
    editor.replace("schema.yaml", "version: 2", "version: 3")
    dropped = editor.save("the column is not wanted any more")
    approve = Order("that is approved", (Approve(selector="database/schema", reason="no v2 left"),))
    return [freeze, renamed, thaw, dropped, approve]
