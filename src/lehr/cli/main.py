"""The command `lehr`: which commands there are, and how a call ends.

Exit codes: 0 fine; 1 an error, or what was asked for did not become true; 2 the call itself is
wrong; 3 there are differences (with `--exit-code`); 130 interrupted; 141 the reader of the output
is gone.

Architecture invariant: a command's module is imported when the command is called, and not before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NoReturn

import click

from lehr import __version__
from lehr.base.errors import LehrError
from lehr.cli.lazy import Lazy, LazyGroup
from lehr.cli.named_server import SERVER_VARIABLE, keep_server

DIFFERENCES = 3
_INTERRUPTED = 130
_BROKEN_PIPE = 141


SECTIONS: Mapping[str, Mapping[str, Lazy]] = {
    "Declare and run": {
        "init": Lazy("lehr.cli.init:init", "Make a first workspace."),
        "adopt": Lazy("lehr.cli.adopt:adopt", "Draft intent from what production has."),
        "validate": Lazy("lehr.cli.validate:validate", "Check a workspace, and show every problem in it."),
        "test": Lazy("lehr.cli.test:test", "Try the examples of policies."),
        "plan": Lazy("lehr.cli.plan:plan", "Show what a workspace would change in production."),
        "set": Lazy("lehr.cli.set:set_", "Change a value in a file of intent, as a commit."),
        "promote": Lazy("lehr.cli.promote:promote", "Take an incarnation of one partition to another."),
        "run": Lazy("lehr.cli.run:run", "Make production as intended, and keep it so."),
        "demo": Lazy("lehr.cli.demo:demo", "Play an example, narrated."),
    },
    "Look": {
        "status": Lazy("lehr.cli.status:status", "Show how everything stands."),
        "why": Lazy("lehr.cli.why:why", "Say why an asset is as it is, and what would change that."),
        "get": Lazy(
            "lehr.cli.get:get", "List assets, incarnations, decisions, operations, orphans, referrers."
        ),
        "describe": Lazy("lehr.cli.describe:describe", "Show all that is known of an asset."),
        "blame": Lazy("lehr.cli.blame:blame", "Say which files, lines and people an asset comes from."),
        "graph": Lazy("lehr.cli.graph:graph", "Show what generators read and make, or how assets refer."),
        "types": Lazy("lehr.cli.types:types", "List the types of assets and addons."),
        "explain": Lazy("lehr.cli.types:explain", "Say what a type or a field of it is for."),
        "diff": Lazy("lehr.cli.diff:diff", "Compare two incarnations, or one and the workspace."),
        "wait": Lazy("lehr.cli.wait:wait", "Wait until assets are where they should be."),
        "serve": Lazy("lehr.cli.serve:serve", "Answer over HTTP what intent says and how it stands."),
        "controller": Lazy("lehr.cli.controller:controller", "Run a controller of your own."),
    },
    "Command a running `lehr run`": {
        "sync": Lazy("lehr.cli.commanding:sync", "Look at the source now."),
        "retry": Lazy("lehr.cli.commanding:retry", "Try again now what failed or stalled."),
        "approve": Lazy("lehr.cli.approve:approve", "Let a destructive change be carried out."),
        "pause": Lazy("lehr.cli.controls:pause", "Leave assets alone: no looking, no pushing."),
        "resume": Lazy("lehr.cli.controls:resume", "Take a pause back."),
        "freeze": Lazy("lehr.cli.controls:freeze", "Push nothing, but go on looking."),
        "unfreeze": Lazy("lehr.cli.controls:unfreeze", "Take a freeze back."),
        "pin": Lazy("lehr.cli.controls:pin", "Keep assets at one incarnation."),
        "unpin": Lazy("lehr.cli.controls:unpin", "Take a pin back."),
        "rollback": Lazy("lehr.cli.controls:rollback", "Pin assets to the incarnation before."),
        "override": Lazy("lehr.cli.controls:override", "Let pushes through a check, in an emergency."),
        "revoke": Lazy("lehr.cli.controls:revoke", "Take an approval or an override back."),
    },
    "Keep secrets": {
        "secret": Lazy("lehr.cli.secret:secret", "Encrypt, edit and rotate secrets, and make keys."),
    },
    "Keep the state": {
        "state": Lazy("lehr.cli.state:state", "Show where the state is, and move it."),
        "claims": Lazy("lehr.cli.claims:claims", "List what partitions hold on this host, and release it."),
        "store": Lazy("lehr.cli.store:store", "Check, prune, export and import what Lehr keeps."),
    },
    "Try Lehr itself": {
        "sim": Lazy("lehr.cli.sim:sim", "Play the program in a world where everything goes wrong."),
    },
    "Other": {
        "doctor": Lazy("lehr.cli.doctor:doctor", "Check that this machine has what Lehr needs."),
        "completion": Lazy("lehr.cli.completion:completion", "Print the completion script of a shell."),
        "version": Lazy("lehr.cli.version:version", "Print the version."),
    },
}
"""All commands, in the order in which `lehr --help` shows them."""


READING = frozenset(
    {"status", "why", "get", "describe", "blame", "graph", "types", "explain", "diff", "wait", "controller"}
)
"""Commands that can read from a server."""


class Commands(LazyGroup):
    """The commands of `SECTIONS`."""

    sections = SECTIONS

    def invoke(self, ctx: click.Context) -> object:
        """Call the command; a reader of the output that goes away (`| head`) ends it silently."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes stdout once more at its end, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(_BROKEN_PIPE) from None
        return result


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""
    \b
    Examples:
      lehr init x && cd x && lehr run --once   from nothing to production
      lehr why --all                           what is not as it should be, and why
      lehr diff previous latest                what the newest incarnation changed

    Exit codes: 0 fine, 1 an error, 2 a wrong call, 3 differences (with --exit-code).
    """,
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option(
    "--server",
    metavar="URL",
    help="Read from a `lehr serve` (http://127.0.0.1:8470) and not from a state here; else LEHR_SERVER.",
)
@click.pass_context
def cli(ctx: click.Context, server: str | None) -> None:
    """Lehr makes production as you declare it, keeps it so, and can say why."""
    command = ctx.invoked_subcommand
    if server is not None and command not in READING:
        raise click.UsageError(
            f"--server is for commands that read ({', '.join(sorted(READING))}): "
            f"call `lehr {command}` without it, on the machine of `lehr run` or of the workspace"
        )
    server = server or os.environ.get(SERVER_VARIABLE)
    if server and command in READING:
        keep_server(ctx, server)


def main() -> NoReturn:
    """Run the command line, and end the process with its exit code."""
    sys.exit(_exit_code())


def _exit_code() -> int:
    chosen: dict[str, str] = {}
    try:
        result = cli.main(prog_name="lehr", standalone_mode=False, obj=chosen)
    except click.exceptions.Abort:
        return _INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except LehrError as error:
        from lehr.cli.errors import show_error

        show_error(error, chosen.get("form", ""))
        return 1
    except Exception as error:
        from lehr.cli.errors import show_unexpected

        show_unexpected(error)
        return 1
    return result if isinstance(result, int) else 0
