"""The option that names the file of plugins in processes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from lehr.base.text import listed


def _absolute(_context: click.Context, _option: click.Parameter, file: Path | None) -> Path | None:
    return None if file is None else file.absolute()


plugins_option = click.option(
    "--plugins",
    "plugins_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="LEHR_PLUGINS",
    callback=_absolute,
    help="File with the plugins that run in processes of their own. Defaults to LEHR_PLUGINS.",
)


def note_of_unasked(plugins_file: Path | None, state: Path) -> tuple[str, ...]:
    """Which validators a look at a workspace does not ask, if no file of plugins is named.

    Args:
        state: the workspace's state folder, where `lehr run` keeps what it knows of its plugins.
    """
    from lehr.wiring.plugin_records import known_validators

    known: Mapping[str, tuple[str, ...]] = {} if plugins_file is not None else known_validators(state)
    if not known:
        return ()
    names = listed([f"{name} (plugin {plugin})" for plugin in known for name in known[plugin]])
    how = "name the file of plugins with --plugins or LEHR_PLUGINS"
    return (f"validators that lehr run has asked here were not asked: {names}; {how}",)
