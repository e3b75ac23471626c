"""`lehr completion`: shell completion of commands, options and their values."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, get_completion_class

from lehr.cli.command import command
from lehr.cli.main import COMPLETE_VARIABLE, cli

_SECONDS = 2.0


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL.

    It also completes values from the state, or from the server that is named: assets, types, statuses,
    incarnations, partitions, controls to lift and diffs to approve. It gives up after 2 seconds.

    Examples:
        lehr completion bash > ~/.local/share/bash-completion/completions/lehr
        source <(lehr completion zsh)
        lehr completion fish > ~/.config/fish/completions/lehr.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, f"click does not support {shell}"
    # Not `source()`: for bash, that runs bash to warn about old versions.
    complete = kind(cli, {}, "lehr", COMPLETE_VARIABLE)
    print(complete.source_template % complete.source_vars())


def complete_quietly() -> None:
    """Print nothing on stderr, where a person is typing, and give up after a short time."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        os._exit(0)

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@add_completion_class
class Bash(BashComplete):
    """Bash ends words also at `=`, `:` and `@`, and replaces only what follows them."""

    _ENDS = "=:@"

    def get_completion_args(self) -> tuple[list[str], str]:
        before, typed = super().get_completion_args()
        words: list[str] = []
        for word in (*before, typed):
            if (words and (word[:1] or " ") in self._ENDS) or (words[-1:] and words[-1][-1:] in self._ENDS):
                words[-1] += word
            else:
                words.append(word)
        *arguments, self._typed = words
        return arguments, self._typed

    def format_completion(self, item: CompletionItem[str]) -> str:
        typed = self._typed.partition("=")[2] if self._typed.startswith("-") else self._typed
        kept = max(typed.rfind(end) for end in self._ENDS) + 1
        return f"{item.type},{item.value[kept:]}"
