"""Commands of scripts that make and watch the world: intent, time, faults, control planes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from lehr.base.errors import LehrError
from lehr.model.asset import AssetId, AssetKey
from lehr.model.decision import Status
from lehr.query.asset_rows import Row
from lehr.query.explain import Explanation, explain
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.faults import LookFault, PushFault
from lehr.testing.sim.metrics import Answers
from lehr.testing.sim.plain_values import on_one_line
from lehr.testing.sim.script_assets import Entry, read_entries, read_text
from lehr.testing.sim.script_commands import Command, Output
from lehr.testing.sim.script_harness import ScriptHarness
from lehr.testing.sim.store import damage as damage_record
from lehr.testing.sim.verdict import judge

_LONG = 3600.0


async def world(harness: ScriptHarness, **options: Any) -> None:
    """Describe the world; only as the first command. `--start` is when it begins
    (Monday, 2026-01-05, 00:00 UTC), `--fencing` what keeps late writers out (native), `--resync`
    how often assets are looked at unasked (1h), `--pushes` how many may be under way (8), `--seed`
    what chance rests on (1).
    """


# --- intent --------------------------------------------------------------------------


async def commit(harness: ScriptHarness, entries: Sequence[Entry]) -> None:
    """Change the source: write the files of the assets below, and have the control plane look at it.
    The first commit starts a control plane.
    """
    harness.write(entries)
    await harness.edit(harness.contents, "commit")


async def file(harness: ScriptHarness, path: str, content: bytes) -> None:
    """Write one file of the source with exactly the content below."""
    harness.write(())
    harness.contents[path] = content
    await harness.edit(harness.contents, f"{path} is written")


async def truncate(harness: ScriptHarness, path: str) -> None:
    """Cut a file of the source off in the middle, as a full disk does."""
    content = _content(harness, path)
    harness.contents[path] = content[: len(content) // 2]
    await harness.edit(harness.contents, f"{path} is cut off")


async def empty(harness: ScriptHarness) -> None:
    """Leave nothing in the source but its workspace file; `repair` brings everything back."""
    workspace = {path: content for path, content in harness.contents.items() if path == "lehr.yaml"}
    await harness.edit(workspace, "the source is empty")


async def double(harness: ScriptHarness, path: str) -> None:
    """Put a file of the source there a second time, under another name; `repair` takes it away."""
    copy = f"assets/copy-of-{path.rsplit('/', 1)[-1]}"
    await harness.edit({**harness.contents, copy: _content(harness, path)}, f"{path} is there twice")


def _content(harness: ScriptHarness, path: str) -> bytes:
    content = harness.contents.get(path)
    if content is None:
        raise LehrError(f"the source has no file {path}", why=f"it has {', '.join(sorted(harness.contents))}")
    return content


async def repair(harness: ScriptHarness) -> None:
    """Bring the source back to what was committed last."""
    harness.repository.unreadable = False
    await harness.edit(harness.contents, "the source is repaired")


async def lose(harness: ScriptHarness) -> None:
    """Make the source unreadable, until `repair`."""
    harness.repository.unreadable = True
    await harness.edit(harness.contents, "the source cannot be read")


# --- time ------------------------------------------------------------------------------


async def advance(harness: ScriptHarness, seconds: float) -> None:
    """Let time pass, and show what happens."""
    await harness.pass_time(seconds)


async def settle(harness: ScriptHarness, seconds: float | None) -> Output:
    """Let time pass until nothing is left to do, or what is left waits for its time, a person or new
    intent. Fails if that takes longer than TIME (1h).
    """
    if not await harness.come_to_rest(_LONG if seconds is None else seconds):
        harness.failures.append("it does not settle")
        return ("it does not settle",)
    return None


async def clock(harness: ScriptHarness, seconds: float) -> None:
    """Set the wall clock forward or back. Elapsed time is not affected."""
    harness.witness.jumped = True
    harness.clock.jump(seconds)


# --- looking ---------------------------------------------------------------------------


async def expect(harness: ScriptHarness, asset: str, status: Status, reason: str | None) -> Output:
    """Fail unless an asset has this status, and this reason if one is given."""
    key = AssetKey(harness.partition, AssetId(asset))
    with harness.reading() as reading:
        found = reading.records.standing(key)
    if found is None:
        state = f"{asset} had no turn yet"
    else:
        condition = found.condition
        if condition.status is status and reason in (None, condition.reason):
            return None
        state = f"{asset} is {condition.status} {condition.reason}"
    failure = f"{state}, not {' '.join(item for item in (status, reason) if item)}"
    harness.failures.append(failure)
    return (f"FAILED  {failure}",)


async def why(harness: ScriptHarness, asset: str) -> Output:
    """Show an asset's status, the reason, and what would unblock it, as `lehr why` does."""
    with harness.reading() as reading:
        return list(_explained(explain(reading, asset), reading.now))


async def production(harness: ScriptHarness) -> Output:
    """Show what there is in production."""
    values = harness.production.values
    return [f"{id} = {on_one_line(values[id])}" for id in sorted(values)] or ["nothing"]


async def turns(harness: ScriptHarness) -> Output:
    """Show how many turns the control plane has taken since it started, or since the last `turns`."""
    total = harness.process.enforcer.turns
    before, harness.turns_shown = harness.turns_shown, (harness.process, total)
    since = before[1] if before[0] is harness.process else 0
    return [f"{total - since} turns"]


async def judged(harness: ScriptHarness) -> Output:
    """Fail unless everything is as intended and nothing was lost. Every history must end like this
    when nothing goes wrong any more.
    """
    found = judge(harness)
    harness.failures += found
    return [f"FAILED  {line}" for line in found]


def _next(row: Row, now: float) -> Iterator[str]:
    does = "retries" if row.automatic else "checks production"
    if row.next_at is not None:
        yield f"  next: {does} in {max(0.0, row.next_at - now):.0f} s"
    elif row.resync is not None:
        yield f"  next: {does} within {row.resync:.0f} s"


def _explained(explanation: Explanation, now: float) -> Iterator[str]:
    row = explanation.row
    yield f"{row.id} is {row.status} {row.reason}".rstrip() + (f": {row.message}" if row.message else "")
    if row.unblock:
        yield f"  unblock: {row.unblock}"
    if not row.settled and row.status != Status.PUSHING:
        yield from _next(row, now)
    for link in explanation.chain:
        again = ", and is waited for again: they wait for each other" if link.cycle else ""
        yield f"  waits for: {link.row.id}, which is {link.row.status} {link.row.reason}{again}"
    for control in explanation.controls:
        yield f"  active: {control.kind} for {control.selector} by {control.actor}: {control.reason}"


# --- trouble in production ---------------------------------------------------------------


async def connect(harness: ScriptHarness) -> None:
    """Have production make a name for each asset, and connect what reads an asset to its name, an output.
    Write it before the first `commit`.
    """
    harness.production.connecting = True


async def drift(harness: ScriptHarness, asset: str, value: str) -> None:
    """Change production by hand, unnoticed; `nothing` takes the asset away."""
    if value == "nothing":
        harness.production.take(asset)
    else:
        harness.production.put(asset, yaml.safe_load(value) if value[:1] in "{[" else value)


async def outage(harness: ScriptHarness, asset: str, seconds: float) -> None:
    """Crash what an asset has in production, which production itself starts again after TIME."""
    if asset not in harness.production.values:
        raise LehrError(f"production holds no {asset}: there is nothing to crash")
    harness.production.break_down(asset, seconds)


async def hint(harness: ScriptHarness, asset: str) -> None:
    """Have the plugin notice that something may have changed."""
    harness.process.hint(asset)


async def fault_push(harness: ScriptHarness, asset: str, fault: PushFault) -> None:
    """From now on, pushes of an asset have this fault."""
    harness.production.push_faults[asset] = fault


async def fault_look(harness: ScriptHarness, asset: str, fault: LookFault) -> None:
    """From now on, looks at an asset have this fault."""
    harness.production.look_faults[asset] = fault


async def fault_blind(harness: ScriptHarness, asset: str, other: str) -> None:
    """From now on, looks at an asset fail while production does not hold the other one."""
    harness.production.blind[asset] = other


async def fault_hide(harness: ScriptHarness, asset: str, seconds: float) -> None:
    """From now on, changes of an asset show this much later."""
    harness.production.hidden[asset] = seconds


async def fault_mute(harness: ScriptHarness, asset: str) -> None:
    """From now on, it is unknown whether a push of an asset still runs."""
    harness.production.mute.add(asset)


async def slow_push(harness: ScriptHarness, seconds: float, asset: str | None) -> None:
    """From now on, pushes take so long: of one asset, or of all (1s)."""
    if asset is None:
        harness.production.seconds = seconds
    else:
        harness.production.pushing[asset] = seconds


async def slow_look(harness: ScriptHarness, seconds: float, asset: str) -> None:
    """From now on, looks at an asset take so long."""
    harness.production.looking[asset] = seconds


async def unreachable(harness: ScriptHarness) -> None:
    """Cut the network between control planes and production, until `heal`."""
    harness.production.unreachable = True


async def metric(harness: ScriptHarness, answers: Answers) -> None:
    """From now on, monitors get such answers from the source `metrics`: an error rate of 0.01 is good, and
    one of 0.5 is bad. `flapping` is good and bad in turn, `none` has no value, `stale` is an hour old.
    """
    harness.metrics.answers = answers


async def heal(harness: ScriptHarness, asset: str | None) -> None:
    """Make production healthy again, or one asset."""
    others = harness.production.push_faults.keys() | harness.production.look_faults.keys()
    harness.production.heal(frozenset() if asset is None else frozenset(others - {asset}))


# --- trouble with control planes -----------------------------------------------------------


async def store(harness: ScriptHarness, what: str) -> None:
    """Make the control plane's store refuse writes (`fail`), refuse reads (`unreadable`) or show the
    past (`lag`); `repair` makes those of all control planes work again.
    """
    if what == "repair":
        for process in harness.running:
            process.store.out_of_order = process.store.unreadable = False
            process.store.catch_up()
        return
    trouble = harness.process.store
    if what == "lag":
        trouble.lag()
    trouble.out_of_order = trouble.out_of_order or what == "fail"
    trouble.unreadable = trouble.unreadable or what == "unreadable"


async def damage(harness: ScriptHarness, asset: str) -> None:
    """Change what the store holds of an asset, as a failing disk does."""
    damage_record(harness.folder / "state.sqlite", asset)


async def crash(harness: ScriptHarness, when: str, write: type) -> None:
    """Have the control plane die just before or after its next write of this kind; where none is
    running, the one that is started next.
    """
    if harness.running:
        harness.crash(harness.process, when, write)
    else:
        harness.crashing = (when, write)


async def kill(harness: ScriptHarness) -> None:
    """Kill the control plane, as `kill -9` does."""
    await harness.process.kill()


async def start(harness: ScriptHarness) -> None:
    """Start a control plane where there is none."""
    if harness.running:
        raise LehrError("a control plane is running already", fix="see `second`")
    await harness.start()


async def hold(harness: ScriptHarness) -> None:
    """Stop the control plane where it is, as SIGSTOP does: a long pause."""
    harness.process.hold()
    harness.held.append(harness.process)


async def release(harness: ScriptHarness) -> None:
    """Let stopped control planes continue."""
    for process in [item for item in harness.held if not item.dead]:
        process.release()
    harness.held.clear()


async def second(harness: ScriptHarness) -> None:
    """Start another control plane while the one before is still there. Only with native fencing, where
    production itself keeps late writers out; else the state folder is locked.
    """
    if harness.settings.fencing is not Fencing.NATIVE:
        raise LehrError("the lock of the state folder keeps a second control plane out")
    await harness.start()


async def failover(harness: ScriptHarness) -> None:
    """Start a control plane on another machine, in place of one that is stopped. It stands by until the lease
    of that one has ended.
    """
    if not harness.held:
        raise LehrError("the lease of the control plane does not end", fix="see `hold`")
    harness.owner = "there"
    await harness.start()


COMMANDS = (
    Command(
        "world [--start MOMENT] [--fencing FENCING] [--resync TIME] [--pushes NUMBER] [--seed NUMBER]", world
    ),
    Command("commit", commit, read_entries),
    Command("file PATH", file, read_text),
    Command("truncate PATH", truncate),
    Command("double PATH", double),
    Command("empty", empty),
    Command("lose", lose),
    Command("repair", repair),
    Command("advance TIME", advance),
    Command("settle [TIME]", settle),
    Command("clock JUMP", clock),
    Command("expect ASSET STATUS [REASON]", expect),
    Command("why ASSET", why),
    Command("production", production),
    Command("turns", turns),
    Command("judge", judged),
    Command("connect", connect),
    Command("drift ASSET VALUE", drift),
    Command("outage ASSET TIME", outage),
    Command("hint ASSET", hint),
    Command("fault push ASSET PUSHFAULT", fault_push),
    Command("fault look ASSET LOOKFAULT", fault_look),
    Command("fault blind ASSET OTHER", fault_blind),
    Command("fault hide ASSET TIME", fault_hide),
    Command("fault mute ASSET", fault_mute),
    Command("slow push TIME [ASSET]", slow_push),
    Command("slow look TIME ASSET", slow_look),
    Command("unreachable", unreachable),
    Command("metric ANSWERS", metric),
    Command("heal [ASSET]", heal),
    Command("store fail|unreadable|lag|repair", store),
    Command("damage ASSET", damage),
    Command("crash before|after WRITE", crash),
    Command("kill", kill),
    Command("start", start),
    Command("hold", hold),
    Command("release", release),
    Command("second", second),
    Command("failover", failover),
)
