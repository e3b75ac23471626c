"""Scenes 8 to 12: what is refused or waits, what leaves production, and losing the control plane."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lehr.base.diagnostics import Diagnostic
from lehr.demo.client import ask
from lehr.demo.shakespeare.stage import FRONTEND, LIMITS, SCHEMA, ShakespeareStage
from lehr.model.attempt import Publication
from lehr.model.reason import Reason

_GENERATOR = "generators/frontend.py"


async def mistakes(stage: ShakespeareStage) -> None:
    """Mistakes are refused, and production is not touched."""
    stage.narrator.say(
        "Four wrong commits. Each is refused as a whole, with the location of every problem; the last "
        "incarnation stays in force."
    )
    async with stage.nothing_lost():
        broken = stage.edit(FRONTEND, (r"^(  eu: .*)\}", r"\1"))
        await _refused(stage, "A forgotten brace", broken, "DOC004")
        dangling = stage.edit(_GENERATOR, (r'"database/lines"', '"database/line"'))
        await _refused(stage, "A reference to nothing", dangling, "VAL001")
        await _refused(stage, "An emptied manifest", {FRONTEND: ""}, "")
        ahead = stage.edit(FRONTEND, (r"^schema: \d+", "schema: 9"))
        await _refused(stage, "A schema version that does not exist", ahead, "VAL005")


async def _refused(stage: ShakespeareStage, message: str, edits: Mapping[str, str | None], code: str) -> None:
    ports = stage.first_port("eu")  # read before the edit, which may remove it

    async def fingerprint() -> tuple[list[int], str]:
        return await stage.processes(ports, 3), stage.last_push()

    def meant(item: Diagnostic) -> bool:
        return code in ("", item.code) and item.at is not None

    await stage.refused(message, edits, meant, fingerprint, "production was not touched")


async def saturday(stage: ShakespeareStage) -> None:
    """It is Saturday: changes wait, except in an emergency."""
    job = "frontend/eu/job"
    stage.narrator.say(
        "A calendar defines when pushes may start. We make today a day off: the next window is in three "
        "days. A change is published now, but waits."
    )
    before = stage.repository.read(LIMITS)
    async with stage.nothing_lost():
        await stage.commit("Not today", stage.closed_today())
        mark = stage.last_push()
        await stage.commit("We play at the Rose", stage.edit(FRONTEND, (r"THEATRE: .*", "THEATRE: the Rose")))
        await stage.until(
            "the job waits for the window", lambda: stage.status(job) == ("Waiting", Reason.OUTSIDE_WINDOW)
        )
        answer = await stage.lehr("why", job)
        stage.check("calendars/frontend is closed until" in answer, "`lehr why` shows until when")
        stage.check(not stage.pushes(job, after=mark), "nothing was pushed")
        reason = "incident 712: the Globe is on fire"
        await stage.lehr(
            *("override", "frontend/*", "--check", "calendars/frontend", "--reason", reason, "--for", "10m")
        )
        await stage.until("the audience gets the new answer", lambda: stage.hears("the Rose"))
        await stage.converged()
        await stage.lehr("why", job)
        stage.check(
            stage.overridden(job, reason), "the decision records the override, its author and its reason"
        )
        await stage.commit("Every day again", {LIMITS: before})


_ASSETS = tuple(f"frontend/us/{part}" for part in ("balancer", "envoy", "job"))
_TABLE = "database/schema"


async def turndown(stage: ShakespeareStage) -> None:
    """A cluster is turned down."""
    stage.narrator.say(
        "We no longer need `us`. Deleting its line is refused, because a missing line is often a mistake."
    )
    async with stage.nothing_lost():
        ports = stage.first_port("us")
        gone = (r"^  us: .*\n", "")
        await stage.removal_refused("Delete us", stage.edit(FRONTEND, gone))
        await stage.revert()

        stage.narrator.say(
            "So we declare a turndown: the service model removes `us` from the global balancer, and turns "
            "down its assets. The balancer is drained before the replicas end."
        )
        asked = stage.edit(FRONTEND, (r"^(  us: .*)\}", r"\1, turndown: the lease ends}"))
        mark = stage.last_push()
        await stage.commit("Turn us down", asked)
        await stage.until(
            "us is gone", lambda: all(stage.status(asset)[0] == "TurnedDown" for asset in _ASSETS)
        )
        await stage.lehr("why", _ASSETS[0])
        drained = "the balancer was drained and removed before the replicas ended"
        stage.in_order(_ASSETS[0], _ASSETS[-1], mark, drained, which=-1)
        stage.check(await _refuses(ports), "its ports no longer answer")
        attempt = await stage.commit("Now its line can go", stage.edit(FRONTEND, gone))
        stage.check(attempt.publication is Publication.PUBLISHED, "its line can now be deleted")
        await stage.converged()


async def _refuses(port: int) -> bool:
    try:
        await ask(port)
    except OSError:
        return True
    return False


async def drop_column(stage: ShakespeareStage) -> None:
    """Destructive changes wait for an approval."""
    stage.narrator.say(
        "Adding two columns needs no approval. Dropping one would lose its data, so an operator must approve "
        "exactly this change."
    )
    version = int(re.findall(r"^version: (\d+)", stage.repository.read(SCHEMA), re.MULTILINE)[0])
    more = (r"(^      )line: .*", r"\g<0>\n\1act: {type: integer}\n\1scene: {type: integer}")
    raised = (r"^version: \d+", f"version: {version + 1}")
    async with stage.nothing_lost():
        await stage.commit("Acts and scenes", stage.edit(SCHEMA, raised, more))
        await stage.converged()
        await stage.commit("Drop the acts", stage.edit(SCHEMA, (r"^      act: .*\n", "")))
        await stage.until("it waits for an approval", lambda: stage.awaits_approval(_TABLE) != "")
        first = stage.awaits_approval(_TABLE)
        await stage.lehr("why", _TABLE)
        stage.check(await _columns(stage, "act"), "the column is still there")

        stage.narrator.say("Before the approval, another commit also drops the scenes. That is a new diff.")
        await stage.commit("Drop the scenes", stage.edit(SCHEMA, (r"^      scene: .*\n", "")))
        await stage.until("the new diff waits", lambda: stage.awaits_approval(_TABLE) not in ("", first))
        approve = ("approve", _TABLE, "--reason", "unused", "--yes")
        await stage.lehr(*approve, "--diff", first[:12], expected=1)
        stage.check(await _columns(stage, "act", "scene"), "an approval of the old diff is refused")
        await stage.lehr(*approve, "--diff", stage.awaits_approval(_TABLE)[:12])
        await stage.converged()
        stage.check(not await _columns(stage, "act"), "approved: the columns are dropped")
        await stage.lehr("why", _TABLE)


async def _columns(stage: ShakespeareStage, *names: str) -> bool:
    query = "SELECT column_name FROM information_schema.columns WHERE table_name = 'lines'"
    found = await stage.sql(query)
    return {*names} <= {*found.split()}


async def crash(stage: ShakespeareStage) -> None:
    """The control plane is killed in the middle of a push."""
    job = "frontend/eu/job"
    stage.narrator.say(
        "A rolling restart is in progress when `lehr run` is killed with SIGKILL. Production is not "
        "affected. The next `lehr run` finds pushes with unknown outcome, and observes production first."
    )
    async with stage.nothing_lost():
        before = await stage.processes(stage.first_port("eu"), 3)
        await stage.commit("We play at the Swan", stage.edit(FRONTEND, (r"THEATRE: .*", "THEATRE: the Swan")))
        await stage.until("the first replica is new", lambda: stage.hears("the Swan"))
        await stage.kill_run()
        stage.check(bool(stage.open_pushes()), "killed in the middle of a push")
        began = await stage.start()
        await stage.converged()
        seconds = stage.clock.monotonic() - began
        stage.check(True, f"everything is as intended, {seconds:.1f} s after the restart")
        stage.check(
            not {*before} & {*await stage.processes(stage.first_port("eu"), 3)}, "every replica is new"
        )
        stage.check(not stage.open_pushes(), "the outcome of every push is recorded")
        await stage.lehr("why", job)
