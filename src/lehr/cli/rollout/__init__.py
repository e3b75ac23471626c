"""`lehr rollout`: rollouts in waves, and commands about them."""

from __future__ import annotations

import click

from lehr.cli.lazy import Lazy, LazyGroup

_READING, _COMMANDS = "lehr.cli.rollout.reading", "lehr.cli.rollout.commands"


@click.command(
    cls=LazyGroup,
    sections={
        "Inspect": {
            "list": Lazy(f"{_READING}:list_", "List rollout policies, and how far their rollouts are."),
            "show": Lazy(f"{_READING}:show_", "Show the units of a rollout, and what it waits for."),
            "forecast": Lazy(f"{_READING}:forecast", "Forecast when units are updated and validated."),
            "history": Lazy(f"{_READING}:history", "List what happened in rollouts."),
        },
        "Control an active `lehr run`": {
            "pause": Lazy(f"{_COMMANDS}:pause", "Release nothing further until resumed."),
            "resume": Lazy(f"{_COMMANDS}:resume", "Lift a pause."),
            "promote": Lazy(f"{_COMMANDS}:promote", "Declare the updated units good: the next wave begins."),
            "abort": Lazy(f"{_COMMANDS}:abort", "End a rollout; updated units keep the content."),
            "rollback": Lazy(f"{_COMMANDS}:rollback", "End a rollout; updated units go back."),
            "restart": Lazy(f"{_COMMANDS}:restart", "Begin again with the newest content."),
            "release": Lazy(f"{_COMMANDS}:release", "Let assets follow intent whose policy is gone."),
            "retry": Lazy(f"{_COMMANDS}:retry", "Allow content that has failed to be tried again."),
        },
    },
)
def rollout() -> None:
    """Show rollouts in waves, and control them.

    An asset of type lehr.RolloutPolicy selects assets. New content then goes to some of them first, and to
    others once it has proven good. POLICY is the id of that asset, and may be left out if there is only one.

    Examples:
        lehr rollout list
        lehr rollout show web-waves --watch
        lehr rollout promote web-waves --reason "checked by hand"
        lehr rollout rollback web-waves --reason "sessions are lost"
    """
