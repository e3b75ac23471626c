"""`lehr completion`: shell completion of commands, options and asset ids."""

from __future__ import annotations

import click

from lehr.cli.command import command

_VARIABLE = "_LEHR_COMPLETE"


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL. It also completes asset ids, from the state.

    Examples:
        lehr completion bash > ~/.local/share/bash-completion/completions/lehr
        source <(lehr completion zsh)
        lehr completion fish > ~/.config/fish/completions/lehr.fish
    """
    from click.shell_completion import get_completion_class

    from lehr.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None, f"click does not support {shell}"
    # Not `source()`: for bash, that runs bash to warn about old versions.
    complete = kind(cli, {}, "lehr", _VARIABLE)
    print(complete.source_template % complete.source_vars())
