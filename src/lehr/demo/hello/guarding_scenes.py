"""Scenes 4 to 6: what Lehr refuses, what it holds back, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping

from lehr.demo.hello.stage import FILES, HelloStage
from lehr.model.attempt import Publication
from lehr.model.reason import Reason


async def mistakes(stage: HelloStage) -> None:
    """Mistakes are refused with file and line, and nothing is touched."""
    stage.narrator.say(
        "Three commits that are wrong. Each is refused whole, with the place of every problem; what was "
        "published last stays in force. `lehr validate` says the same before one commits."
    )
    files = stage.repository.read(FILES)
    broken = files.replace("type: lehr.Command", "type: [lehr.Command")
    await _refused(stage, "A forgotten bracket", {FILES: broken}, FILES, lines=True)
    dangling = files.replace("  lehr.Owner:", "  lehr.DependsOn: {assets: [hello/pge]}\n  lehr.Owner:")
    await _refused(stage, "A reference to nothing", {FILES: dangling}, FILES, lines=True)
    emptied = dict.fromkeys((FILES, "assets/limits.yaml"))
    await _refused(stage, "An emptied directory", emptied, FILES, lines=False)


async def _refused(
    stage: HelloStage, message: str, edits: Mapping[str, str | None], file: str, *, lines: bool
) -> None:
    before = await stage.fingerprint()
    attempt = await stage.commit(message, edits)
    await stage.lehr("validate", expected=1)
    stage.check(
        attempt.publication is Publication.REFUSED, f"refused; {_name(attempt.sequence)} stays in force"
    )
    places = [item.at for item in attempt.diagnostics if item.at is not None and item.at.file == file]
    stage.check(
        any(place.line > 0 or not lines for place in places),
        f"the answer points to {next(map(str, places), 'nowhere')}",
    )
    stage.check(await stage.fingerprint() == before, "no file and no process was touched")
    undone = await stage.revert()
    stage.check(undone.publication is Publication.UNCHANGED, "after the revert, nothing has to be done")


def _name(sequence: int) -> str:
    return f"incarnation {sequence}"


async def freeze(stage: HelloStage) -> None:
    """A freeze holds, and says so."""
    stage.narrator.say(
        "A freeze holds at once and needs no commit. A change that comes meanwhile is published, and waits."
    )
    before = await stage.fingerprint()
    await stage.lehr("freeze", "hello/*", "--reason", "guests are in the house")
    await stage.commit("A greeting for later", stage.greet("Hello, later"))
    await stage.until(
        "the page waits for the freeze", lambda: stage.status("hello/page") == ("Waiting", Reason.FROZEN)
    )
    said = await stage.lehr("why", "hello/page")
    stage.check("guests are in the house" in said, "`lehr why` says which freeze, and its reason")
    stage.check(await stage.fingerprint() == before, "production is as it was")
    await stage.lehr("unfreeze", "hello/*")
    seconds = await stage.until("the page is replaced", lambda: "later" in stage.page.read_text())
    stage.check(True, f"without the freeze the page is replaced, after {seconds:.2f} s")
    await stage.served("Hello, later")
    await stage.converged()


async def why(stage: HelloStage) -> None:
    """Why is it as it is?"""
    stage.narrator.say(
        "Every change of mind is recorded: what a turn read, what every check said, what was done. So "
        "`lehr why` can answer for what blocks, and also for what went well."
    )
    said = await stage.lehr("why", "hello/web")
    with stage.plane.reading() as reading:
        assert reading is not None
        operations = reading.records.operations(reading.partition, limit=1000)
        decisions = reading.records.decisions(reading.partition, limit=10_000)
        [last] = [item for item in operations if item.asset == "hello/web"][:1]
    explained = {decision.operation for _number, decision in decisions}
    stage.check(last.id in said, "the answer names the push that made it so")
    stage.check(
        all(operation.id in explained for operation in operations),
        f"each of the {len(operations)} pushes so far has the decision that it rests on",
    )
