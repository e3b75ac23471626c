"""`lehr sim replay` and `lehr sim show`: one history."""

from __future__ import annotations

import click

from lehr.cli.command import command
from lehr.cli.output import output_option, show_document

policies_option = click.option(
    "--policies", is_flag=True, help="Give it rollout policies, as `lehr sim run --policies` does."
)


@command()
@click.argument("seed", type=int)
@policies_option
@output_option("text", "json")
def replay(seed: int, policies: bool, form: str) -> None:
    """Replay the history of SEED, and report which invariants it breaks.

    Examples:
        lehr sim replay 17
        lehr sim replay 17 -o json     with the digest of the history, and the paths taken

    Exits with 1 if an invariant is broken.
    """
    from lehr.testing.sim.suite import kind_of, play
    from lehr.testing.sim.trace import clock

    played = play(seed, kind_of(policies=policies))
    if form == "json":
        show_document("json", played)
    else:
        print(f"seed {seed}: {played.events} events in {clock(played.seconds)}, digest {played.digest}")
        for violation in played.violations:
            print(f"  broken  {violation}")
    if played.violations:
        option = " --policies" if policies else ""
        click.echo(f"`lehr sim show {seed}{option}` prints what happened", err=True)
        raise click.exceptions.Exit(1)
    if form == "text":
        click.echo("every invariant holds", err=True)


@command()
@click.argument("seed", type=int)
@policies_option
@click.option("--writes", is_flag=True, help="Also show every write to the store.")
def show(seed: int, policies: bool, writes: bool) -> None:
    """Print the history of SEED: what people, machines and the control plane did, and the results.

    Times are virtual, counted from the start, as h:mm:ss.

    Examples:
        lehr sim show 17
        lehr sim show 17 --writes | less     with every write to the store
    """
    from lehr.testing.sim.suite import history_of, kind_of

    history = history_of(seed, kind_of(policies=policies))
    print("\n".join(history.trace.story(writes=writes)))
    for violation in dict.fromkeys(history.violations):
        print(f"broken    {violation}")
    if not history.violations:
        print("every invariant holds")
