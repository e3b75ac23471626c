"""Scenes 6 and 7: a bad version that only its canary gets, and a good one in waves."""

from __future__ import annotations

import json
from typing import Any

from lehr.demo.shakespeare.metrics import SOURCE
from lehr.demo.shakespeare.serving_scenes import SPEAKER
from lehr.demo.shakespeare.stage import FRONTEND, LIMITS, SCHEMA, ShakespeareStage

POLICY = "waves/frontend"

_FILE = "assets/waves.yaml"
_JOB, _OTHER_JOB = "frontend/us/job", "frontend/eu/job"
_CLOSED = "held by calendars/frontend until"
_SOON = 60.0  # seconds in which a canary that fails three of ten requests should be found


async def canary(stage: ShakespeareStage) -> None:
    """A bad version reaches one cluster only, and is taken back."""
    stage.narrator.say(
        "A rollout policy: a new version reaches the job, the Envoy and the balancer of `us` first. The "
        "others follow if `us` does not fail more requests than they do. The policy itself moves nothing."
    )
    mark = await _govern(stage)
    audience = stage.seated()
    stage.check(stage.last_push() == mark, "the policy came into force, and nothing was pushed")
    stage.narrator.say("v3 starts and is healthy, but fails three of ten requests.")
    await stage.commit("v3", stage.edit(FRONTEND, (r"^version: \w+", "version: v3")))
    await stage.until("us serves v3", lambda: stage.serving("us", 2, "v3"))
    began = stage.clock.monotonic()
    answer = await stage.lehr("why", _OTHER_JOB)
    stage.check(POLICY in answer, "`lehr why` names the rollout that eu waits for")
    await stage.until("us is taken back", lambda: "rollback" in stage.purposes(_JOB, after=mark))
    seconds = stage.clock.monotonic() - began
    stage.check(seconds < _SOON, f"us is taken back {seconds:.0f} s after it began to serve v3")
    await stage.until("us serves v1 again", lambda: stage.serving("us", 2, "v1"))
    answer = await stage.lehr("rollout", "show", POLICY)
    stage.check("canary analysis" in answer, "`lehr rollout show` names the canary analysis as the cause")
    stage.check("quarantined" in answer, "v3 is quarantined: no rollout begins with it again")
    await stage.lehr("rollout", "history", POLICY)
    await stage.lehr("why", _JOB)
    got = {where for where, version in audience.answered | audience.errors if version == "v3"}
    stage.check(got == {"us"}, f"only us ever answered with v3: {audience.errors['us', 'v3']} errors")


async def waves(stage: ShakespeareStage) -> None:
    """A good version in waves, which wait while a calendar is closed."""
    stage.narrator.say(
        "v4 is v3 without the fault. It is other content, so the quarantine does not apply to it."
    )
    mark = await _govern(stage)
    opened = stage.repository.read(LIMITS)
    async with stage.nothing_lost():
        await stage.commit("v4", stage.edit(FRONTEND, (r"^version: \w+", "version: v4")))
        await stage.until("us serves v4", lambda: stage.serving("us", 2, "v4"))
        await stage.lehr("rollout", "forecast", POLICY)
        stage.narrator.say(
            "The calendar closes before `us` has proven good. The next wave waits until it opens."
        )
        await stage.commit("No pushes today", stage.closed_today())
        await stage.until("us is found to be good", lambda: _is_good(stage, "us"))
        await stage.until("eu waits for the calendar", lambda: _shows(stage, _CLOSED))
        answer = await stage.lehr("rollout", "show", POLICY)
        stage.check(_CLOSED in answer, "`lehr rollout show` shows until when the calendar holds eu")
        answer = await stage.lehr("why", _OTHER_JOB)
        stage.check(POLICY in answer, "`lehr why` names the rollout")
        stage.check(await stage.serving("eu", 3, "v1"), "eu still serves v1")
        await stage.commit("Pushes again", {LIMITS: opened})
        await stage.until("eu serves v4", lambda: stage.serving("eu", 3, "v4"))
        await stage.until("all units are good", lambda: _is_good(stage, "eu"))
        await stage.lehr("rollout", "show", POLICY)
        stage.in_order(_JOB, _OTHER_JOB, mark, "us was pushed before eu")
        await _free(stage)
        await stage.converged()


async def _govern(stage: ShakespeareStage) -> str:
    """See that the policy is in force, and the schema is the one that v3 and v4 need.

    Returns the last push before that of the policy.
    """
    counters = await stage.counted()
    if "speaker" not in stage.repository.read(SCHEMA):
        schema = stage.edit(SCHEMA, (r"^version: \d+", "version: 2"), SPEAKER)
        needed = stage.edit(FRONTEND, (r"^schema: \d+", "schema: 2"))
        await stage.commit("The column that newer versions read", {**schema, **needed})
        await stage.converged()
    mark = stage.last_push()
    if not (stage.workspace / _FILE).exists():
        asset = _policy(stage.clusters(), counters.counters())
        await stage.commit("Roll out in waves", {_FILE: json.dumps(asset, indent=2) + "\n"})
        await stage.converged()
    return mark


def _policy(clusters: list[str], counters: dict[str, Any]) -> dict[str, Any]:
    """The policy, with an analysis that decides in seconds: the audience sends many requests."""
    judge = {"negligible": 0.02, "minimum_requests": 300, "minimum_seconds": 10, "warmup_seconds": 3}
    return {
        "id": POLICY,
        "type": "lehr.RolloutPolicy",
        "payload": {
            "select": {"ids": [f"frontend/{name}/*" for name in clusters]},
            "unit": "place",
            "target_selection": {"waves": [{"where": {"place": "us"}}, {}]},
            "validation": {
                "look_every": 2,
                "canary": {"source": SOURCE, "counters": counters, "judge": judge},
            },
        },
    }


async def _is_good(stage: ShakespeareStage, unit: str) -> bool:
    """Whether a unit has been validated by the newest rollout."""
    found = json.loads(await stage.lehr("rollout", "history", POLICY, "-o", "json", show=False))
    facts = [item["fact"] for item in found if item["rollout"] == found[0]["rollout"]]
    return any(fact["fact"] == "validated" and unit in fact["units"] for fact in facts)


async def _shows(stage: ShakespeareStage, words: str) -> bool:
    """Whether `lehr rollout show` has these words."""
    return words in await stage.lehr("rollout", "show", POLICY, show=False)


async def _free(stage: ShakespeareStage) -> None:
    """Remove the policy, and let the clusters follow intent again: other scenes are about other things."""
    stage.narrator.say("The other scenes need no waves. Without the policy, a person lets the clusters go.")
    await stage.commit("No more waves", {_FILE: None})
    await stage.lehr("rollout", "release", "frontend/*", "--reason", "no longer rolled out in waves")
