"""Scenes 6 and 9: what is refused, and what waits for its time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from lehr.demo.shakespeare.stage import FRONTEND, LIMITS, ShakespeareStage
from lehr.model.attempt import Publication
from lehr.model.reason import Reason

_GENERATOR = "generators/frontend.py"
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


async def mistakes(stage: ShakespeareStage) -> None:
    """Mistakes are refused, and production is not touched."""
    stage.narrator.say(
        "Four commits that are wrong. Each is refused whole, with the place of every problem; what was "
        "published last stays in force."
    )
    async with stage.nothing_lost():
        broken = stage.edit(FRONTEND, (r"^(  eu: .*)\}", r"\1"))
        await _refused(stage, "A forgotten brace", broken, "DOC004")
        dangling = stage.edit(_GENERATOR, (r'"database/lines"', '"database/line"'))
        await _refused(stage, "A reference to nothing", dangling, "VAL001")
        await _refused(stage, "An emptied manifest", {FRONTEND: ""}, "")
        ahead = stage.edit(FRONTEND, (r"^schema: \d+", "schema: 9"))
        await _refused(stage, "A version of the schema that nobody declares", ahead, "VAL005")


async def _refused(stage: ShakespeareStage, message: str, edits: Mapping[str, str | None], code: str) -> None:
    ports = stage.first_port("eu")  # read before the edit, which may leave nothing to read
    processes, mark = await stage.processes(ports, 3), stage.last_push()
    attempt = await stage.commit(message, edits)
    await stage.lehr("validate", expected=1)
    stage.check(
        attempt.publication is Publication.REFUSED, f"refused; incarnation {attempt.sequence} stays in force"
    )
    found = [item for item in attempt.diagnostics if code in ("", item.code) and item.at is not None]
    stage.check(bool(found), f"the answer points to {found[0].at if found else 'nowhere'}")
    stage.check(
        (await stage.processes(ports, 3), stage.last_push()) == (processes, mark),
        "production was not touched",
    )
    undone = await stage.revert()
    stage.check(undone.publication is Publication.UNCHANGED, "after the revert, nothing has to be done")


async def saturday(stage: ShakespeareStage) -> None:
    """It is Saturday: a change waits, but for an emergency."""
    job = "frontend/eu/job"
    stage.narrator.say(
        "A calendar says when pushes may start. Today is made a day off: the next window is in three days. "
        "A change that comes now is published, and waits."
    )
    today = dt.datetime.fromtimestamp(stage.clock.now(), dt.UTC).weekday()
    closed = stage.edit(LIMITS, (r"days: \[.*?\]", f"days: [{_DAYS[(today + 3) % 7]}]"))
    before = stage.repository.read(LIMITS)
    async with stage.nothing_lost():
        await stage.commit("Not today", closed)
        mark = stage.last_push()
        await stage.commit("We play at the Rose", stage.edit(FRONTEND, (r"THEATRE: .*", "THEATRE: the Rose")))
        await stage.until(
            "the job waits for the window", lambda: stage.status(job) == ("Waiting", Reason.OUTSIDE_WINDOW)
        )
        said = await stage.lehr("why", job)
        stage.check("calendars/frontend is closed until" in said, "`lehr why` says until when")
        stage.check(not stage.pushes(job, after=mark), "nothing was pushed")
        reason = "incident 712: the Globe is on fire"
        await stage.lehr(
            *("override", "frontend/*", "--check", "calendars/frontend", "--reason", reason, "--for", "10m")
        )
        await stage.until("the audience hears of it", lambda: stage.hears("the Rose"))
        await stage.converged()
        await stage.lehr("why", job)
        stage.check(stage.overridden(job, reason), "the decision names the override, by whom and why")
        await stage.commit("Every day again", {LIMITS: before})
