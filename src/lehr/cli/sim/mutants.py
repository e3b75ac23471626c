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

from lehr.cli import terminal, words
from lehr.cli.output import output_option, print_lines, show_document

if TYPE_CHECKING:
    from lehr.testing.sim.mutants.judge import Finding
    from lehr.testing.sim.mutants.mutation import Mutation

_WRONG_CALL = 2
_SEEDS = 1000
_SHOWN = 5
_PLAN = re.compile("plan ([a-z]+:[^:]*): ")


@click.command(
    epilog="""
    \b
    Examples:
      lehr sim mutants                         plant every bug
      lehr sim mutants lost-wake-up stale-read
      lehr sim mutants -o wide                 with the rule that each breaks
      lehr sim mutants --from-scratch          as if nobody had ever found one

    Ends with 1 if a bug is not found.
    """
)
@click.argument("names", nargs=-1)
@click.option(
    "--seeds", type=click.IntRange(1), default=_SEEDS, show_default=True, help="Histories for each."
)
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: one for each processor]")
@click.option("--from-scratch", is_flag=True, help="Try what found each last time last.")
@click.option("--record", is_flag=True, help="Write down what found each, in its patch.")
@output_option("table", "wide", "json")
def mutants(
    names: tuple[str, ...], seeds: int, jobs: int | None, from_scratch: bool, record: bool, form: str
) -> None:
    """Plant known bugs in copies of the program, and see whether the simulation finds each.

    NAMES are of bugs that come with Lehr; without any, all are planted. What found a bug last time is
    played first; then histories, scenarios, and fault plans.
    """
    import os

    from lehr.testing.sim.mutants import judge, mutation

    with _judging():
        chosen = [mutation.find(name) for name in names] or list(mutation.shipped().values())
    findings = asyncio.run(_all(chosen, range(seeds), jobs or os.cpu_count() or 1, from_scratch))
    if form == "json":
        show_document(form, findings)
    else:
        print_lines(_table(findings, wide=form == "wide"))
    if record:
        for item in findings:
            if item.case is not None:
                mutation.record(item.mutation, judge.hint(item.case))
    simulated = sum(1 for item in chosen if not item.outside)
    click.echo(_summary(findings, simulated), err=True)
    if not all(item.found for item in findings):
        raise click.exceptions.Exit(1)


@click.command(
    epilog="""
    \b
    Examples:
      lehr sim mutant my-bug.patch                 a bug that nobody has seen
      lehr sim mutant stale-read --seed 0          one that comes with Lehr, and what finds it
      lehr sim mutant stale-read --seed 0 --show   as a story

    Ends with 0 if it is found, 1 if not, and 2 if the patch cannot be judged.
    """
)
@click.argument("patch")
@click.option("--seeds", type=click.IntRange(1), default=_SEEDS, show_default=True, help="Histories to try.")
@click.option("--seed", type=click.IntRange(0), help="Play this one alone.")
@click.option(
    "--scenario", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Play this one alone."
)
@click.option("--plan", metavar="SCENARIO:NAME", help="Play this fault plan alone.")
@click.option("--show", "story", is_flag=True, help="Tell what happens in it, as a story.")
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: one for each processor]")
def mutant(
    patch: str,
    seeds: int,
    seed: int | None,
    scenario: Path | None,
    plan: str | None,
    story: bool,
    jobs: int | None,
) -> None:
    """Plant the bug of PATCH in a copy of the program, and see whether the simulation finds it.

    PATCH is a unified diff of src/lehr, or the name of a bug that comes with Lehr. Nothing but the
    copy is changed.
    """
    import os

    from lehr.testing.sim.mutants import judge
    from lehr.testing.sim.mutants.mutation import find

    chosen = _cases(seed, scenario, plan)
    if (story and len(chosen) != 1) or len(chosen) > 1:
        raise click.UsageError("choose one: --seed, --scenario or --plan")
    with _judging():
        mutation = find(patch)
        if story:
            judge.show(mutation, *chosen)
            return
        played = chosen or judge.cases(range(seeds))
        finding = asyncio.run(_one(mutation, played, jobs or os.cpu_count() or 1))
    _tell(patch, finding)
    if not finding.found:
        raise click.exceptions.Exit(1)


def _cases(seed: int | None, scenario: Path | None, plan: str | None) -> list[str]:
    path = None if scenario is None else scenario.resolve()
    named = {"seed": seed, "scenario": path, "plan": plan}
    return [f"{kind} {argument}" for kind, argument in named.items() if argument is not None]


def _again(finding: Finding) -> tuple[str, str]:
    """The option, and its argument, that plays again what found it."""
    kind, _, argument = (finding.case or "").partition(" ")
    if kind == "plans":
        # A share of the plans found it; the first violation begins with the very one.
        found = _PLAN.match(finding.violations[0])
        return "plan", found[1] if found else argument
    return kind, argument


@contextlib.contextmanager
def _judging() -> Iterator[None]:
    """A patch that cannot be judged is a wrong call."""
    from lehr.cli.errors import show_error
    from lehr.testing.sim.mutants.patch import PatchError

    try:
        yield
    except PatchError as error:
        show_error(error)
        raise click.exceptions.Exit(_WRONG_CALL) from error


async def _one(mutation: Mutation, played: Sequence[str], jobs: int) -> Finding:
    from lehr.base.clock import SystemClock
    from lehr.testing.sim.mutants.judge import judge, sound

    clock = SystemClock()
    return await judge(mutation, await sound(played, clock, jobs), clock, jobs)


async def _all(chosen: Sequence[Mutation], seeds: range, jobs: int, from_scratch: bool) -> list[Finding]:
    """Result of each, in their order."""
    from lehr.base.clock import SystemClock
    from lehr.testing.sim.mutants.judge import cases, judge_all, sound

    clock = SystemClock()
    played = await sound(cases(seeds), clock, jobs)
    findings: dict[str, Finding] = {}
    async for finding in judge_all(chosen, played, clock, jobs, from_scratch=from_scratch):
        findings[finding.mutation] = finding
        _note(finding, len(findings), len(chosen))
    return [findings[mutation.name] for mutation in chosen]


def _note(finding: Finding, number: int, total: int) -> None:
    """One line for each on a terminal, to show progress."""
    if sys.stderr.isatty():
        click.echo(f"{number}/{total} {finding.mutation}: {_found_by(finding)}", err=True)


def _summary(findings: Sequence[Finding], simulated: int) -> str:
    """How many were found, by what, and how long that took for a hundred of them."""
    found = [item.by for item in findings if item.found]
    kinds = ", ".join(f"{found.count(kind)} by {kind}" for kind in sorted(set(found)))
    share = found.count("histories") * 100 // max(1, simulated)
    seconds = sum(item.seconds for item in findings)
    rate = words.span(seconds * 100 / len(findings))
    return (
        f"{len(found)} of {len(findings)} found: {kinds}\n"
        f"histories alone find {share} % of the {simulated} that lie in what they simulate\n"
        f"{words.span(seconds)} of work, {rate} for each 100"
    )


def _table(findings: Sequence[Finding], *, wide: bool) -> Iterator[str]:
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


def _breaks(finding: Finding) -> str:
    return finding.violations[0] if finding.violations else finding.trouble


def _found_by(finding: Finding) -> str:
    if finding.case is None:
        return "cannot be judged" if finding.trouble else "NOT FOUND"
    kind, argument = _again(finding)
    return f"{kind} {argument.rpartition('/')[2].removesuffix('.txt')}"


def _tell(patch: str, finding: Finding) -> None:
    if finding.case is None:
        said = f"not found: {words.counted(finding.tried, 'case')} went well"
        print(terminal.style(said, "red", bold=True))
        return
    kind, argument = _again(finding)
    print(f"found by {kind} {argument} after {finding.seconds:g} s")
    for line in finding.violations[:_SHOWN]:
        print(terminal.printable(f"  broken  {line}"))
    if kind == "test":
        return
    call = shlex.join(["lehr", "sim", "mutant", patch, f"--{kind}", argument, "--show"])
    click.echo(f"`{call}` tells what happened", err=True)
