"""The process that plays against a changed copy of the package.

Its arguments are how many seconds a case may compute, and where the tests are. It reads cases from
standard input, one in a line: `seed 17` or `seed 17 --policies`; `scenario` and the path of a script;
`plans hello 3/16` for a share of the fault plans of a scenario, or `plan hello:NAME` for one of them; `test`
and the id of a test of the repository. To standard output it writes, for each, a line when it begins and one
with what went wrong when it is over. A case that does not end ends the process.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from lehr.testing.sim import script_play, suite
from lehr.testing.sim.plans.campaign import Campaign, campaign, judge
from lehr.testing.sim.plans.plan import FaultPlan

READY = b"ready"
"""The first line: everything needed could be imported."""

_WALL_SECONDS = 300.0
_MEMORY = 4 << 30
_MOST = 20
_PASSED, _FAILED = 0, 1


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one case, by its number among those that were read.

    Attributes:
        violations: None when it begins; when it is over, everything that went wrong.
    """

    number: int
    violations: tuple[str, ...] | None = None


def main() -> None:
    """Play the cases of standard input."""
    longest = float(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    _print_line(READY)
    for number, case in enumerate(sys.stdin.read().splitlines()):
        _print_line(msgspec.json.encode(Line(number)))
        # Nothing catches these signals: whatever loops for ever, the process ends.
        signal.setitimer(signal.ITIMER_VIRTUAL, longest)
        signal.setitimer(signal.ITIMER_REAL, _WALL_SECONDS)
        kind, _, argument = case.partition(" ")
        violations = _PLAY[kind](argument)
        _print_line(msgspec.json.encode(Line(number, tuple(violations[:_MOST]))))


def _print_line(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _seed(argument: str) -> Sequence[str]:
    number, _, policies = argument.partition(" ")
    return suite.play(int(number), suite.kind_of(policies=bool(policies))).violations


def _scenario(path: str) -> Sequence[str]:
    """Differences from the script's expectations."""
    script, diagnostics = script_play.read(Path(path).read_text(), path)
    if diagnostics:
        return [f"the script cannot be read: {diagnostics[0].what}"]
    with suite.scratch() as folder, suite.silence():
        try:
            played = script_play.play(script, folder)
        except Exception as error:
            return [f"the run broke: {type(error).__name__}: {error}"]
    return [*played.failures, *(line for line in played.difference if line[:1] in "-+")]


def _plans(argument: str) -> Sequence[str]:
    """Alarms of the first plan of a share that raises any."""
    scenario, _, share = argument.partition(" ")
    number, _, shares = share.partition("/")
    return _first_alarm(scenario, lambda found: found.plans.played[int(number) :: int(shares)])


def _plan(argument: str) -> Sequence[str]:
    """Alarms of one plan."""
    scenario, _, name = argument.partition(":")
    return _first_alarm(scenario, lambda found: found.selected(name)[:1])


def _first_alarm(scenario: str, chosen: Callable[[Campaign], Sequence[FaultPlan]]) -> Sequence[str]:
    try:
        found = campaign(scenario)
        for plan in chosen(found):
            alarms = judge(found, plan).alarms
            if alarms:
                return [f"plan {scenario}:{plan.name}: {alarm}" for alarm in alarms]
    except Exception as error:
        return [f"plan {scenario}:: the run broke: {type(error).__name__}: {error}"]
    return []


def testing(id: str) -> list[str]:
    """The command that runs a test of the repository against the changed program."""
    return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", id]


def _test(id: str) -> Sequence[str]:
    """How a test fails."""
    ran = subprocess.run(
        testing(id), cwd=sys.argv[2], capture_output=True, text=True, errors="replace", check=False
    )
    if ran.returncode not in (_PASSED, _FAILED):
        raise RuntimeError(f"{id} cannot be run: {ran.stdout[-500:]}{ran.stderr[-500:]}")
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("E  ", "FAILED"))]
    return (failed or [f"{id} fails"]) if ran.returncode == _FAILED else []


_PLAY: Mapping[str, Callable[[str], Sequence[str]]] = {
    "seed": _seed,
    "scenario": _scenario,
    "plans": _plans,
    "plan": _plan,
    "test": _test,
}
"""How each kind of case is played: its argument, and its problems."""


if __name__ == "__main__":
    main()
