"""`lehr sim plans`: inject a fault at every point of reference runs, and compare."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.output import output_option, show_document
from lehr.cli.progress import tallied
from lehr.cli.sim import jobs_option

if TYPE_CHECKING:
    from lehr.testing.sim.plans.campaign import Campaign, Judged
    from lehr.testing.sim.plans.plan import FaultPlan

_SCENARIOS = ("hello", "shakespeare")
_FENCINGS = ("native", "compare-and-swap", "none")
_SHOWN = 10
_LINES = 3


@command()
@click.argument("scenarios", metavar="[SCENARIO]...", nargs=-1, type=click.Choice(_SCENARIOS))
@click.option("--only", default="", metavar="TEXT", help="Only plans with TEXT in their name.")
@click.option(
    "--fencing",
    type=click.Choice(_FENCINGS),
    default=_FENCINGS[0],
    show_default=True,
    help="How production rejects late writers.",
)
@jobs_option
@click.option("--show", "story", is_flag=True, help="Print each as a story.")
@output_option("text", "json")
def plans(scenarios: tuple[str, ...], only: str, fencing: str, jobs: int, story: bool, form: str) -> None:
    """Play SCENARIO once without faults, then again with one fault at each point that it passed.

    Control planes crash, are held or doubled, read stale data, miss events; pushes end with unknown
    outcome; sources are damaged. The result must be that of the run without a fault, and production must
    only pass through states that it passed through there. Plans that cannot change anything are skipped
    and counted. Scenarios: hello, shakespeare.

    Examples:
        lehr sim plans                                          every plan of both scenarios
        lehr sim plans hello --only "held and replaced"         plans with this in their name
        lehr sim plans hello --only "crash after commit 17" --show

    Exits with 1 on an alarm; every alarm prints the command that replays it.
    """
    from lehr.base.errors import LehrError
    from lehr.sdk.plugin import Fencing
    from lehr.testing.sim.plans.campaign import campaign

    if story and not only:
        raise click.UsageError("--show requires --only: there are hundreds of plans")
    campaigns = [campaign(name, Fencing(fencing)) for name in scenarios or _SCENARIOS]
    selected = [(item, chosen) for item in campaigns if (chosen := item.selected(only))]
    if not selected:
        raise LehrError(
            f"no plan has {only!r} in its name",
            code="SIM101",
            fix='a name looks like "crash after commit 17"',
        )
    reports = []
    for found, chosen in selected:
        if story:
            _print_stories(found, chosen)
            continue
        reports.append(_report(found, chosen, jobs, bar=form == "text"))
        if form == "text":
            _print_report(reports[-1])
    if form == "json" and not story:
        show_document("json", reports)
    if any(report["alarms"] for report in reports):
        raise click.exceptions.Exit(1)


def _report(campaign: Campaign, chosen: Sequence[FaultPlan], jobs: int, *, bar: bool) -> dict[str, Any]:
    from lehr.base.clock import SystemClock
    from lehr.testing.sim.plans.campaign import failed, judge_all

    command = f"lehr sim plans {campaign.scenario}"
    if campaign.reference.fencing.value != _FENCINGS[0]:
        command += f" --fencing {campaign.reference.fencing.value}"
    clock = SystemClock()
    began = clock.monotonic()
    judging, noun = judge_all(campaign, chosen, jobs), f"plans of {campaign.scenario}"
    results = list(tallied(judging, noun, len(chosen), "with an alarm", _alarming, shown=bar))
    return {
        "scenario": campaign.scenario,
        "played": len(results),
        "pruned": dict(Counter(reason for _plan, reason in campaign.plans.pruned).most_common()),
        "points": len(campaign.reference.points),
        "states": campaign.plans.states,
        "seconds": round(clock.monotonic() - began, 1),
        "virtual_seconds": round(sum(result.seconds for result in results)),
        "alarms": [
            {
                "plan": item.plan.name,
                "alarms": item.alarms,
                "replay": f"{command} --only {shlex.quote(item.plan.name)}",
            }
            for item in failed(results)
        ],
    }


def _alarming(result: Judged) -> bool:
    return bool(result.alarms)


def _print_report(report: dict[str, Any]) -> None:
    pruned = report["pruned"]
    print(
        f"{report['scenario']}: {formatting.counted(report['played'], 'plan', 'plans')} played in "
        f"{report['seconds']:g} s, {sum(pruned.values())} pruned; "
        f"{report['states']} different states at {report['points']} points"
    )
    for reason, count in pruned.items():
        print(f"  pruned {count:>4}  {reason}")
    for item in report["alarms"][:_SHOWN]:
        print(f"  alarm   {item['plan']}")
        for line in item["alarms"][:_LINES]:
            print(f"          {line}")
        print(f"          {item['replay']}")
    if len(report["alarms"]) > _SHOWN:
        print(f"          and {len(report['alarms']) - _SHOWN} more")
    if not report["alarms"]:
        print("  all end as without a fault, through the same states")


def _print_stories(campaign: Campaign, chosen: Sequence[FaultPlan]) -> None:
    from lehr.testing.sim.plans.campaign import played

    for plan in chosen:
        play = played(campaign, plan)
        print(f"{campaign.scenario}: {plan.name}")
        print("\n".join(play.trace.story()))
        for alarm in play.alarms or ["none: it ends as without the fault, through the same states"]:
            print(f"alarm     {alarm}")
