"""`lehr sim mutants` and `lehr sim mutant`: planted bugs, and what finds them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.clock import SystemClock
from lehr.cli import formatting, terminal
from lehr.cli.command import command
from lehr.cli.output import output_option, print_lines, show_document
from lehr.cli.sim import jobs_option

if TYPE_CHECKING:
    from lehr.testing.sim.mutants.judge import MutationResult
    from lehr.testing.sim.mutants.mutation import Mutation

_WRONG_CALL = 2
_SEEDS = 1000
_SHOWN = 5
_PLAN = re.compile("plan ([a-z]+:[^:]*): ")


@command()
@click.argument("names", nargs=-1)
@click.option(
    "--seeds", type=click.IntRange(1), default=_SEEDS, show_default=True, help="Number of histories per bug."
)
@jobs_option
@click.option(
    "--from-scratch", is_flag=True, help="Try the recorded finding of each bug last instead of first."
)
@click.option("--record", is_flag=True, help="Record in its patch what found each bug.")
@click.option(
    "--from",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the patches.  [default: tests/simulation/planted of the repository]",
)
@output_option("table", "wide", "json")
def mutants(
    names: tuple[str, ...],
    seeds: int,
    jobs: int,
    from_scratch: bool,
    record: bool,
    folder: Path | None,
    form: str,
) -> None:
    """Plant known bugs in copies of the program, and check whether the simulation finds each.

    NAMES are those of bugs in the Lehr repository, by default all. The recorded finding of a bug is tried
    first, then histories, scenarios and fault plans.

    Examples:
        lehr sim mutants                         plant every bug
        lehr sim mutants lost-wake-up stale-read
        lehr sim mutants -o wide                 with the invariant that each breaks
        lehr sim mutants --from-scratch          without the recorded findings

    Exits with 1 if a bug is not found.
    """
    from lehr.testing.sim.mutants import judge, mutation

    found = folder or _in_repository(names)
    with _judging():
        chosen = [mutation.find(name, found) for name in names] or list(mutation.planted(found).values())
    findings = asyncio.run(_all(chosen, range(seeds), jobs, from_scratch))
    if form == "json":
        show_document(form, findings)
    else:
        print_lines(_table(findings, wide=form == "wide"))
    if record:
        for item in findings:
            if item.case is not None:
                mutation.record(item.mutation, judge.hint(item.case), found)
    simulated = sum(1 for item in chosen if not item.outside)
    click.echo(_summary(findings, simulated), err=True)
    if not all(item.found for item in findings):
        raise click.exceptions.Exit(1)


@command()
@click.argument("patch")
@click.option(
    "--seeds", type=click.IntRange(1), default=_SEEDS, show_default=True, help="Number of histories to try."
)
@click.option("--seed", type=click.IntRange(0), help="Only play this one.")
@click.option("--policies", is_flag=True, help="Give the history of --seed rollout policies.")
@click.option(
    "--scenario", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Only play this one."
)
@click.option("--plan", metavar="SCENARIO:NAME", help="Only play this fault plan.")
@click.option("--show", "story", is_flag=True, help="Print it as a story.")
@jobs_option
def mutant(
    patch: str,
    seeds: int,
    seed: int | None,
    policies: bool,
    scenario: Path | None,
    plan: str | None,
    story: bool,
    jobs: int,
) -> None:
    """Plant the bug of PATCH in a copy of the program, and check whether the simulation finds it.

    PATCH is a unified diff of src/lehr, or the name of a bug in the repository of Lehr. Only
    the copy is changed.

    Examples:
        lehr sim mutant my-bug.patch                 your own bug
        lehr sim mutant stale-read --seed 0          a bug of the repository, in one history
        lehr sim mutant stale-read --seed 0 --show   the same, as a story

    Exits with 0 if it is found, 1 if not, and 2 if the patch cannot be used.
    """
    from lehr.testing.sim.mutants import judge
    from lehr.testing.sim.mutants.mutation import find

    if policies and seed is None:
        raise click.UsageError("--policies is for --seed")
    chosen = _cases(seed, scenario, plan, policies=policies)
    if (story and len(chosen) != 1) or len(chosen) > 1:
        raise click.UsageError("--seed, --scenario and --plan cannot be combined")
    folder = _in_repository([patch])
    with _judging():
        mutation = find(patch, folder)
        if story:
            judge.show(mutation, *chosen)
            return
        played = chosen or judge.cases(range(seeds))
        finding = asyncio.run(_one(mutation, played, jobs))
    _print_result(patch, finding)
    if not finding.found:
        raise click.exceptions.Exit(1)


def _in_repository(names: Sequence[str]) -> Path:
    """The folder of the repository's planted bugs, which `names` are in unless they are files."""
    from lehr.base.errors import LehrError
    from lehr.testing.sim.mutants.mutation import PLANTED

    if not PLANTED.is_dir() and not (names and all(Path(name).is_file() for name in names)):
        raise LehrError(
            "an installed Lehr has no planted bugs",
            code="SIM105",
            why=f"there is no {PLANTED}",
            fix="run it from a clone of the repository, or name a patch file",
        )
    return PLANTED


def _cases(seed: int | None, scenario: Path | None, plan: str | None, *, policies: bool) -> list[str]:
    path = None if scenario is None else scenario.resolve()
    named = {"seed": f"{seed} --policies" if policies else seed, "scenario": path, "plan": plan}
    return [f"{kind} {argument}" for kind, argument in named.items() if argument is not None]


def _again(finding: MutationResult) -> tuple[str, str]:
    """The option and argument that replay what found it."""
    kind, _, argument = (finding.case or "").partition(" ")
    if kind == "plans":
        # Several plans ran together; the first violation starts with the name of the one that found it.
        found = _PLAN.match(finding.violations[0])
        return "plan", found[1] if found else argument
    return kind, argument


@contextlib.contextmanager
def _judging() -> Iterator[None]:
    """A patch that cannot be used is invalid usage."""
    from lehr.cli.errors import show_error
    from lehr.testing.sim.mutants.patch import PatchError

    try:
        yield
    except PatchError as error:
        show_error(error)
        raise click.exceptions.Exit(_WRONG_CALL) from error


async def _one(mutation: Mutation, played: Sequence[str], jobs: int) -> MutationResult:
    from lehr.testing.sim.mutants.judge import judge, sound

    clock = SystemClock()
    return await judge(mutation, await sound(played, clock, jobs), clock, jobs)


async def _all(
    chosen: Sequence[Mutation], seeds: range, jobs: int, from_scratch: bool
) -> list[MutationResult]:
    """The results, in the same order."""
    from lehr.testing.sim.mutants.judge import cases, judge_all, sound

    clock = SystemClock()
    played = await sound(cases(seeds), clock, jobs)
    findings: dict[str, MutationResult] = {}
    async for finding in judge_all(chosen, played, clock, jobs, from_scratch=from_scratch):
        findings[finding.mutation] = finding
        if sys.stderr.isatty():  # to show progress
            click.echo(f"{len(findings)}/{len(chosen)} {finding.mutation}: {_found_by(finding)}", err=True)
    return [findings[mutation.name] for mutation in chosen]


def _summary(findings: Sequence[MutationResult], simulated: int) -> str:
    """How many were found, by what, and the time for a hundred of them."""
    found = [item.by for item in findings if item.found]
    kinds = ", ".join(f"{found.count(kind)} by {kind}" for kind in sorted(set(found)))
    share = found.count("histories") * 100 // max(1, simulated)
    seconds = sum(item.seconds for item in findings)
    rate = formatting.span(seconds * 100 / len(findings))
    return (
        f"{len(found)} of {len(findings)} found: {kinds}\n"
        f"histories alone find {share} % of the {simulated} in simulated code\n"
        f"{formatting.span(seconds)} of work, {rate} for each 100"
    )


def _table(findings: Sequence[MutationResult], *, wide: bool) -> Iterator[str]:
    """Lines; those of bugs that are not found are red."""
    titles = ["mutation", "bug", "found by", "seconds", *(["breaks"] if wide else [])]
    rows = [
        [item.mutation, item.bug, _found_by(item), f"{item.seconds:.1f}", *([_breaks(item)] if wide else [])]
        for item in findings
    ]
    head, *lines = terminal.table(titles, rows, None if wide else terminal.width())
    yield head
    for line, finding in zip(lines, findings, strict=True):
        yield line if finding.found else terminal.style(line, "red", bold=True)


def _breaks(finding: MutationResult) -> str:
    return finding.violations[0] if finding.violations else finding.trouble


def _found_by(finding: MutationResult) -> str:
    if finding.case is None:
        return "cannot be used" if finding.trouble else "NOT FOUND"
    kind, argument = _again(finding)
    return f"{kind} {argument.rpartition('/')[2].removesuffix('.txt')}"


def _print_result(patch: str, finding: MutationResult) -> None:
    if finding.case is None:
        text = f"not found: {formatting.counted(finding.tried, 'case')} passed"
        print(terminal.style(text, "red", bold=True))
        return
    kind, argument = _again(finding)
    print(f"found by {kind} {argument} after {finding.seconds:g} s")
    for line in finding.violations[:_SHOWN]:
        print(terminal.printable(f"  broken  {line}"))
    if kind == "test":
        return
    arguments = argument.split() if kind == "seed" else [argument]
    call = shlex.join(["lehr", "sim", "mutant", patch, f"--{kind}", *arguments, "--show"])
    click.echo(f"`{call}` prints what happened", err=True)
