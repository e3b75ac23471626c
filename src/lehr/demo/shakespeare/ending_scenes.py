"""Scenes 7, 8 and 10: what leaves production, and losing the control plane."""

from __future__ import annotations

import re

from lehr.demo.shakespeare.audience import ask
from lehr.demo.shakespeare.stage import FRONTEND, SCHEMA, ShakespeareStage
from lehr.model.attempt import Publication

_ASSETS = tuple(f"frontend/us/{part}" for part in ("balancer", "envoy", "job"))
_TABLE = "database/schema"


async def turndown(stage: ShakespeareStage) -> None:
    """A cluster leaves."""
    stage.narrator.say(
        "`us` is to go. Its line is deleted: refused, for a missing line is more often a mistake."
    )
    async with stage.nothing_lost():
        ports = stage.first_port("us")
        gone = (r"^  us: .*\n", "")
        attempt = await stage.commit("Delete us", stage.edit(FRONTEND, gone))
        said = await stage.lehr("validate", expected=1)
        stage.check(attempt.publication is Publication.REFUSED, "refused")
        stage.check("lehr.Turndown" in said and "let_go" in said, "the answer names both ways out")
        await stage.revert()

        stage.narrator.say(
            "So it is said: the service model takes `us` out of the global balancer, and turns down "
            "all that is its own. The balancer is drained before the replicas end."
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
        stage.check(await _refuses(ports), "nothing answers at its ports")
        attempt = await stage.commit("Now its line can go", stage.edit(FRONTEND, gone))
        stage.check(attempt.publication is Publication.PUBLISHED, "and now its line may go")
        await stage.converged()


async def _refuses(port: int) -> bool:
    try:
        await ask(port)
    except OSError:
        return True
    return False


async def drop_column(stage: ShakespeareStage) -> None:
    """What destroys waits for a person."""
    stage.narrator.say(
        "Two columns are added, and nobody has to be asked. Then one is to be dropped: what was in it would "
        "be lost, so a person has to approve exactly this."
    )
    version = int(re.findall(r"^version: (\d+)", stage.repository.read(SCHEMA), re.MULTILINE)[0])
    more = (r"(^      )line: .*", r"\g<0>\n\1act: {type: integer}\n\1scene: {type: integer}")
    raised = (r"^version: \d+", f"version: {version + 1}")
    async with stage.nothing_lost():
        await stage.commit("Acts and scenes", stage.edit(SCHEMA, raised, more))
        await stage.converged()
        await stage.commit("Nobody wants the acts", stage.edit(SCHEMA, (r"^      act: .*\n", "")))
        await stage.until("it waits for an approval", lambda: stage.awaits_approval(_TABLE) != "")
        first = stage.awaits_approval(_TABLE)
        await stage.lehr("why", _TABLE)
        stage.check(await _columns(stage, "act"), "the column is still there")

        stage.narrator.say("Before anybody approves, the scenes are to go, too. That is another diff.")
        await stage.commit("Nor the scenes", stage.edit(SCHEMA, (r"^      scene: .*\n", "")))
        await stage.until("the new diff waits", lambda: stage.awaits_approval(_TABLE) not in ("", first))
        approve = ("approve", _TABLE, "--reason", "nobody reads them", "--yes")
        await stage.lehr(*approve, "--diff", first[:12], expected=1)
        stage.check(await _columns(stage, "act", "scene"), "an approval of the old diff is refused")
        await stage.lehr(*approve, "--diff", stage.awaits_approval(_TABLE)[:12])
        await stage.converged()
        stage.check(not await _columns(stage, "act"), "approved: the columns are gone")
        await stage.lehr("why", _TABLE)


async def _columns(stage: ShakespeareStage, *names: str) -> bool:
    query = "SELECT column_name FROM information_schema.columns WHERE table_name = 'lines'"
    found = await stage.sql(query)
    return {*names} <= {*found.split()}


async def crash(stage: ShakespeareStage) -> None:
    """The control plane is killed in the middle of a push."""
    job = "frontend/eu/job"
    stage.narrator.say(
        "A roll is under way when `lehr run` is killed with SIGKILL. Production does not mind. The next "
        "`lehr run` finds pushes whose end it does not know, and looks before it touches anything."
    )
    async with stage.nothing_lost():
        before = await stage.processes(stage.first_port("eu"), 3)
        await stage.commit("We play at the Swan", stage.edit(FRONTEND, (r"THEATRE: .*", "THEATRE: the Swan")))
        await stage.until("the first replica is new", lambda: stage.hears("the Swan"))
        stage.narrator.shell(("kill", "-9", str(stage.plane.process)))
        await stage.plane.kill()
        stage.check(bool(stage.open_pushes()), "killed in the middle of a push")
        stage.narrator.shell(("lehr", "run"))
        began = stage.clock.monotonic()
        await stage.plane.start()
        await stage.converged()
        seconds = stage.clock.monotonic() - began
        stage.check(True, f"everything is as intended, {seconds:.1f} s after the restart")
        stage.check(
            not {*before} & {*await stage.processes(stage.first_port("eu"), 3)}, "every replica is new"
        )
        stage.check(not stage.open_pushes(), "the end of every push is known")
        await stage.lehr("why", job)
