"""The command `lehr`: its commands and exit codes.

Exit codes: 0 success; 1 an error, or the requested condition was not met; 2 invalid usage; 3 there are
differences (with `--exit-code`); 4 the evidence is not enough for a verdict; 130 interrupted; 141 the
reader of the output is gone.

Architecture invariant: the module of a command is imported only when the command is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NoReturn

import click

from lehr import __version__
from lehr.base.errors import LehrError
from lehr.cli.global_options import global_options
from lehr.cli.lazy import Lazy, LazyGroup
from lehr.cli.pager import no_pager_option

DIFFERENCES = 3
COMPLETE_VARIABLE = "_LEHR_COMPLETE"
"""Set by the scripts that `lehr completion` prints."""

_INTERRUPTED = 130
_BROKEN_PIPE = 141


SECTIONS: Mapping[str, Mapping[str, Lazy]] = {
    "Declare and run": {
        "init": Lazy("lehr.cli.init:init", "Create a workspace."),
        "adopt": Lazy("lehr.cli.adopt:adopt", "Draft intent from existing production."),
        "validate": Lazy("lehr.cli.validate:validate", "Check a workspace and show all problems."),
        "test": Lazy("lehr.cli.test:test", "Test policies with their examples."),
        "plan": Lazy("lehr.cli.plan:plan", "Show what a workspace would change in production."),
        "set": Lazy("lehr.cli.set:set_", "Change a value in a file of intent and commit it."),
        "promote": Lazy("lehr.cli.promote:promote", "Promote an incarnation of one partition to another."),
        "run": Lazy("lehr.cli.run:run", "Bring production to its intended state and keep it there."),
        "stop": Lazy("lehr.cli.stop:stop", "Stop the active `lehr run`, and on request all processes."),
        "service": Lazy("lehr.cli.service:service", "Run `lehr run` as a service of systemd."),
        "demo": Lazy("lehr.cli.demo:demo", "Run a narrated example."),
    },
    "Roll out": {
        "rollout": Lazy("lehr.cli.rollout:rollout", "Show rollouts, and pause, promote or roll one back."),
        "select": Lazy("lehr.cli.select:select", "Show which units a rollout would update now."),
        "validate-canary": Lazy(
            "lehr.cli.validate_canary:validate_canary", "Judge recorded data of a canary."
        ),
    },
    "Inspect": {
        "status": Lazy("lehr.cli.status:status", "Show the overall status."),
        "top": Lazy("lehr.cli.top:top", "Show the work under way, and what fails or waits most."),
        "why": Lazy("lehr.cli.why:why", "Explain the status of an asset, and what would unblock it."),
        "replay": Lazy("lehr.cli.replay:replay", "Decide a recorded decision again, and compare."),
        "get": Lazy("lehr.cli.get:get", "List assets, incarnations, decisions, operations and more."),
        "describe": Lazy("lehr.cli.describe:describe", "Show everything about an asset."),
        "blame": Lazy("lehr.cli.blame:blame", "Show which files, lines and commits an asset comes from."),
        "graph": Lazy("lehr.cli.graph:graph", "Show generators or references between assets as a graph."),
        "types": Lazy("lehr.cli.types:types", "List the types of assets and addons."),
        "explain": Lazy("lehr.cli.types:explain", "Describe a type or one of its fields."),
        "diff": Lazy("lehr.cli.diff:diff", "Compare two incarnations, or an incarnation with the workspace."),
        "logs": Lazy("lehr.cli.logs:logs", "Show what the programs of an asset print."),
        "events": Lazy("lehr.cli.events:events", "Show what happened to assets, and follow it."),
        "audit": Lazy("lehr.cli.events:audit", "List the commands that people gave."),
        "wait": Lazy("lehr.cli.wait:wait", "Wait until assets have converged."),
        "serve": Lazy("lehr.cli.serve:serve", "Serve intent and status over HTTP."),
        "open": Lazy("lehr.cli.open:open_", "Show the page in a browser."),
        "controller": Lazy("lehr.cli.controller:controller", "Run your own controller."),
    },
    "Control an active `lehr run`": {
        "sync": Lazy("lehr.cli.run_requests:sync", "Check the source now."),
        "retry": Lazy("lehr.cli.run_requests:retry", "Retry failed or stalled assets now."),
        "approve": Lazy("lehr.cli.approve:approve", "Approve a destructive change."),
        "restart": Lazy("lehr.cli.controls:restart", "Restart what runs of an asset."),
        "pause": Lazy("lehr.cli.controls:pause", "Pause assets: neither observe nor push them."),
        "resume": Lazy("lehr.cli.controls:resume", "Lift a pause."),
        "freeze": Lazy("lehr.cli.controls:freeze", "Stop pushes, but keep observing."),
        "unfreeze": Lazy("lehr.cli.controls:unfreeze", "Lift a freeze."),
        "pin": Lazy("lehr.cli.controls:pin", "Keep assets at an incarnation."),
        "unpin": Lazy("lehr.cli.controls:unpin", "Lift a pin."),
        "rollback": Lazy("lehr.cli.controls:rollback", "Pin assets to the previous incarnation."),
        "override": Lazy("lehr.cli.controls:override", "Override a check in an emergency."),
        "revoke": Lazy("lehr.cli.controls:revoke", "Revoke an approval, an override or a restart."),
    },
    "Manage secrets": {
        "secret": Lazy("lehr.cli.secret:secret", "Encrypt, edit and rotate secrets; generate keys."),
    },
    "Write and run plugins": {
        "plugin": Lazy("lehr.cli.plugin:plugin", "Write, test and list plugins in processes of their own."),
    },
    "Manage the state": {
        "state": Lazy("lehr.cli.state:state", "Show or move the state folder."),
        "claims": Lazy("lehr.cli.claims:claims", "List or release the claims of partitions on this host."),
        "store": Lazy("lehr.cli.store:store", "Check, prune, export and import the store."),
    },
    "Test Lehr itself": {
        "sim": Lazy("lehr.cli.sim:sim", "Simulate Lehr in a world full of faults."),
    },
    "Other": {
        "help": Lazy("lehr.cli.help:help_", "Explain a command, a topic, a reason or a code."),
        "doctor": Lazy("lehr.cli.doctor:doctor", "Check that this machine has what Lehr needs."),
        "completion": Lazy("lehr.cli.completion:completion", "Print a shell completion script."),
        "version": Lazy("lehr.cli.version:version", "Print the version."),
    },
}
"""All commands, in the order in which `lehr --help` shows them."""


_COMMIT = "In Lehr: commit the change; `lehr run` applies it. `lehr plan` shows it first."
_RUN = "In Lehr: `lehr run` brings production to its intended state and keeps it there."
_EDIT = "In Lehr: edit the file that declares the asset (see `lehr blame ASSET`), or use `lehr set`."
_TURN_DOWN = "In Lehr: give the asset the addon `lehr.Turndown` and commit; absence removes nothing."
_HOLD = "In Lehr: `lehr freeze SELECTOR` stops pushes, until `lehr unfreeze SELECTOR` allows them again."
_LIST = "In Lehr: `lehr get assets` lists assets with their status."
_SHOW = "In Lehr: `lehr describe ASSET` shows everything about an asset, `lehr why ASSET` explains it."
_SERVICE = "In Lehr: `lehr service install` runs Lehr under systemd; `lehr service uninstall` removes it."

FOREIGN: Mapping[str, str] = {
    **dict.fromkeys(("apply", "deploy", "patch", "replace", "update", "upgrade"), _COMMIT),
    **dict.fromkeys(("start", "up"), _RUN),
    **dict.fromkeys(("edit", "label", "scale"), _EDIT),
    **dict.fromkeys(("delete", "destroy", "remove", "rm"), _TURN_DOWN),
    **dict.fromkeys(("cordon", "drain", "hold", "uncordon"), _HOLD),
    **dict.fromkeys(("list", "ls", "ps"), _LIST),
    **dict.fromkeys(("info", "inspect", "show"), _SHOW),
    **dict.fromkeys(("disable", "enable", "install", "uninstall"), _SERVICE),
    "create": "In Lehr: declare the asset in a file and commit it; `lehr init` creates a workspace.",
    "down": "In Lehr: `lehr stop --processes` stops everything; the addon `lehr.Turndown` removes an asset.",
    "history": "In Lehr: `lehr get incarnations`, `lehr get operations ASSET` and `lehr events` show it.",
    "import": "In Lehr: `lehr adopt` drafts intent from what exists; `lehr run` adopts what matches it.",
    "output": "In Lehr: `lehr describe ASSET` shows the outputs of an asset.",
    "preview": "In Lehr: `lehr plan` shows what a workspace would change in production.",
    "refresh": "In Lehr: production is compared continuously; `lehr sync` checks the source now.",
    "reload": "In Lehr: declare `reload_on` of the process; `lehr restart ASSET` restarts it now.",
    "taint": "In Lehr: `lehr restart ASSET` restarts a process although nothing differs.",
    "undo": "In Lehr: `lehr rollback SELECTOR` pins the previous incarnation.",
    "watch": "In Lehr: `lehr events -f` follows what happens, `lehr get assets --watch` each status.",
}
"""Commands of kubectl, terraform, docker, systemctl and nomad, and what to do in Lehr instead."""


class Commands(LazyGroup):
    """The commands of Lehr."""

    def invoke(self, ctx: click.Context) -> object:
        """Call the command; it ends silently when the reader of its output is gone (`| head`)."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes stdout at exit, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(_BROKEN_PIPE) from None
        return result


@click.command(
    cls=Commands,
    sections=SECTIONS,
    foreign=FOREIGN,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@global_options
@no_pager_option
def cli(**_passed_on: str | None) -> None:
    """Lehr brings production to the state you declare, keeps it there, and explains every step.

    Examples:
        lehr init x && cd x && lehr run --once   from nothing to production
        lehr why --all                           what is not as intended, and why
        lehr diff previous latest                changes of the newest incarnation

    Options may be written before or after the command; `lehr COMMAND --help` lists those that it takes.
    `lehr help` lists topics as well.

    Exit codes: 0 success, 1 error, 2 invalid usage, 3 differences (with --exit-code).
    """


def main() -> NoReturn:
    """Run the command line, and exit with its exit code."""
    _open_standard_streams()
    sys.exit(_exit_code())


def _open_standard_streams() -> None:
    """Replace streams that the caller has closed (`>&-`): no file of ours may get their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)


def _exit_code() -> int:
    chosen: dict[str, str] = {}
    if COMPLETE_VARIABLE in os.environ:
        from lehr.cli.completion import complete_quietly

        complete_quietly()
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
        from lehr.cli.errors import of_the_system, show_error, show_unexpected

        foreseen = of_the_system(error) if isinstance(error, OSError) else None
        if foreseen is None:
            show_unexpected(error)
        else:
            show_error(foreseen, chosen.get("form", ""))
        return 1
    return result if isinstance(result, int) else 0
