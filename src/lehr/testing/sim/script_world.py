"""Commands of scripts that make and watch the world: intent, time, faults, control planes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from lehr.base.errors import LehrError
from lehr.model.asset import AssetId, AssetKey
from lehr.model.decision import Status
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.faults import LookFault, PushFault
from lehr.testing.sim.process import running
from lehr.testing.sim.script_assets import Entry, read_entries, read_text
from lehr.testing.sim.script_commands import Command, Said
from lehr.testing.sim.script_stage import Stage
from lehr.testing.sim.script_told import told_value, why
from lehr.testing.sim.verdict import judge

_LONG = 3600.0


async def world(stage: Stage, **options: Any) -> Said:
    """Say what kind of world it is; only as the first command. `--start` is when it begins
    (Monday, 2026-01-05, 00:00 UTC), `--fencing` what keeps late writers out (native), `--resync`
    how often assets are looked at unasked (1h), `--pushes` how many may be under way (8), `--seed`
    what chance rests on (1).
    """
    return ()


# --- intent --------------------------------------------------------------------------


async def commit(stage: Stage, entries: Sequence[Entry]) -> Said:
    """Change the source: write the files of the assets below, and have the control plane look at it.
    The first commit starts a control plane.
    """
    stage.write(entries)
    await stage.edit(stage.contents, "commit")
    return ()


async def file(stage: Stage, path: str, content: bytes) -> Said:
    """Write one file of the source as it stands below, whatever it is."""
    stage.write(())
    stage.contents[path] = content
    await stage.edit(stage.contents, f"{path} is written")
    return ()


async def truncate(stage: Stage, path: str) -> Said:
    """Cut a file of the source off in the middle, as a full disk does."""
    content = _content(stage, path)
    stage.contents[path] = content[: len(content) // 2]
    await stage.edit(stage.contents, f"{path} is cut off")
    return ()


async def empty(stage: Stage) -> Said:
    """Leave nothing in the source but its workspace file; `mend` brings everything back."""
    workspace = {path: content for path, content in stage.contents.items() if path == "lehr.yaml"}
    await stage.edit(workspace, "the source is empty")
    return ()


async def double(stage: Stage, path: str) -> Said:
    """Put a file of the source there a second time, under another name; `mend` takes it away."""
    copy = f"assets/copy-of-{path.rsplit('/', 1)[-1]}"
    await stage.edit({**stage.contents, copy: _content(stage, path)}, f"{path} is there twice")
    return ()


def _content(stage: Stage, path: str) -> bytes:
    content = stage.contents.get(path)
    if content is None:
        raise LehrError(f"the source has no file {path}", why=f"it has {', '.join(sorted(stage.contents))}")
    return content


async def mend(stage: Stage) -> Said:
    """Bring the source back to what was committed last."""
    stage.repository.unreadable = False
    await stage.edit(stage.contents, "the source is mended")
    return ()


async def lose(stage: Stage) -> Said:
    """Make the source unreadable, until `mend`."""
    stage.repository.unreadable = True
    await stage.edit(stage.contents, "the source cannot be read")
    return ()


# --- time ------------------------------------------------------------------------------


async def advance(stage: Stage, seconds: float) -> Said:
    """Let time pass, and show what happens meanwhile."""
    await stage.pass_time(seconds)
    return ()


async def settle(stage: Stage, seconds: float | None) -> Said:
    """Let time pass until nothing is left to do, or what is left waits for its time, a person or new
    intent. Fails if that takes longer than TIME (1h).
    """
    if not await stage.come_to_rest(_LONG if seconds is None else seconds):
        stage.failures.append("it does not settle")
        return ("it does not settle",)
    return ()


async def clock(stage: Stage, seconds: float) -> Said:
    """Set the wall clock forward or back. Time itself goes on as before."""
    stage.witness.jumped = True
    stage.clock.jump(seconds)
    return ()


# --- looking ---------------------------------------------------------------------------


async def expect(stage: Stage, asset: str, status: str, reason: str | None) -> Said:
    """Fail unless an asset stands so."""
    key = AssetKey(stage.site.partition, AssetId(asset))
    reading = stage.reading()
    try:
        found = reading.records.standing(key)
    finally:
        reading.store.close()
    if found is None:
        stands = f"{asset} had no turn yet"
    else:
        condition = found.condition
        if condition.status == Status(status) and reason in (None, condition.reason):
            return ()
        stands = f"{asset} is {condition.status} {condition.reason}"
    said = f"{stands}, not {' '.join(item for item in (status, reason) if item)}"
    stage.failures.append(said)
    return (f"FAILED  {said}",)


async def production(stage: Stage) -> Said:
    """Show what there is in production."""
    values = stage.production.values
    return [f"{id} = {told_value(values[id])}" for id in sorted(values)] or ["nothing"]


async def judged(stage: Stage) -> Said:
    """Fail unless all is as intended, and nothing was lost: what every history must come to when
    nothing goes wrong any more.
    """
    found = judge(stage)
    stage.failures += found
    return [f"FAILED  {line}" for line in found]


# --- trouble in production ---------------------------------------------------------------


async def drift(stage: Stage, asset: str, value: str) -> Said:
    """Change production by hand, unnoticed; `nothing` takes the asset away."""
    if value == "nothing":
        stage.production.take(asset)
    else:
        stage.production.put(asset, yaml.safe_load(value) if value[:1] in "{[" else value)
    return ()


async def outage(stage: Stage, asset: str, seconds: float) -> Said:
    """Crash what an asset has in production, which production itself starts again after TIME."""
    if asset not in stage.production.values:
        raise LehrError(f"production holds no {asset}: there is nothing to crash")
    stage.production.break_down(asset, seconds)
    return ()


async def hint(stage: Stage, asset: str) -> Said:
    """Have the plugin notice that something may have changed."""
    stage.process.hint(asset)
    return ()


async def fault_push(stage: Stage, asset: str, fault: str) -> Said:
    """From now on, pushes of an asset come to this."""
    stage.production.push_faults[asset] = PushFault(fault)
    return ()


async def fault_look(stage: Stage, asset: str, fault: str) -> Said:
    """From now on, looks at an asset come to this."""
    stage.production.look_faults[asset] = LookFault(fault)
    return ()


async def fault_blind(stage: Stage, asset: str, other: str) -> Said:
    """From now on, looks at an asset fail while production does not hold the other one."""
    stage.production.blind[asset] = other
    return []


async def fault_hide(stage: Stage, asset: str, seconds: float) -> Said:
    """From now on, changes of an asset show this much later."""
    stage.production.hidden[asset] = seconds
    return ()


async def fault_mute(stage: Stage, asset: str) -> Said:
    """From now on, nobody can tell whether a push of an asset goes on."""
    stage.production.mute.add(asset)
    return ()


async def slow_push(stage: Stage, seconds: float, asset: str | None) -> Said:
    """From now on, pushes take so long: of one asset, or of all (1s)."""
    if asset is None:
        stage.production.seconds = seconds
    else:
        stage.production.pushing[asset] = seconds
    return ()


async def slow_look(stage: Stage, seconds: float, asset: str) -> Said:
    """From now on, looks at an asset take so long."""
    stage.production.looking[asset] = seconds
    return ()


async def unreachable(stage: Stage) -> Said:
    """Cut the network between control planes and production, until `heal`."""
    stage.production.unreachable = True
    return ()


async def heal(stage: Stage, asset: str | None) -> Said:
    """Make production healthy again, or one asset."""
    others = stage.production.push_faults.keys() | stage.production.look_faults.keys()
    stage.production.heal(frozenset() if asset is None else frozenset(others - {asset}))
    return ()


# --- trouble with control planes -----------------------------------------------------------


async def store(stage: Stage, what: str) -> Said:
    """Make the control plane's store refuse writes (`fail`), refuse reads (`unreadable`) or show the
    past (`lag`); `mend` makes those of all control planes work again.
    """
    if what == "mend":
        for process in running(stage.processes):
            process.store.out_of_order = process.store.unreadable = False
            process.store.catch_up()
        return ()
    trouble = stage.process.store
    if what == "lag":
        trouble.lag()
    trouble.out_of_order = trouble.out_of_order or what == "fail"
    trouble.unreadable = trouble.unreadable or what == "unreadable"
    return ()


async def damage(stage: Stage, asset: str) -> Said:
    """Change what the store holds of an asset, as a failing disk does."""
    stage.damage(asset)
    return ()


async def crash(stage: Stage, when: str, write: str) -> Said:
    """Have the control plane die just before or after its next write of this kind; where none is
    running, the one that is started next.
    """
    if running(stage.processes):
        stage.crash(stage.process, when, write)
    else:
        stage.crashing = (when, write)
    return ()


async def kill(stage: Stage) -> Said:
    """Kill the control plane, as `kill -9` does."""
    await stage.kill(stage.process)
    return ()


async def start(stage: Stage) -> Said:
    """Start a control plane where there is none."""
    if running(stage.processes):
        raise LehrError("a control plane is running already", fix="see `second`")
    await stage.start()
    return ()


async def hold(stage: Stage) -> Said:
    """Stop the control plane where it is, as SIGSTOP does: a long pause."""
    stage.process.hold()
    stage.held.append(stage.process)
    return ()


async def release(stage: Stage) -> Said:
    """Let control planes that were stopped go on."""
    for process in running(stage.held):
        process.release()
    stage.held.clear()
    return ()


async def second(stage: Stage) -> Said:
    """Start another control plane while the one before is still there. Only with native fencing, where
    production itself keeps late writers out; else the state folder is locked.
    """
    if stage.setting.fencing is not Fencing.NATIVE:
        raise LehrError("the lock of the state folder keeps a second control plane out")
    await stage.start()
    return ()


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
    Command("mend", mend),
    Command("advance TIME", advance),
    Command("settle [TIME]", settle),
    Command("clock JUMP", clock),
    Command("expect ASSET STATUS [REASON]", expect),
    Command("why ASSET", why),
    Command("production", production),
    Command("judge", judged),
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
    Command("heal [ASSET]", heal),
    Command("store fail|unreadable|lag|mend", store),
    Command("damage ASSET", damage),
    Command("crash before|after WRITE", crash),
    Command("kill", kill),
    Command("start", start),
    Command("hold", hold),
    Command("release", release),
    Command("second", second),
)
