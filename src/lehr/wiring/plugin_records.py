"""Plugins of other processes, as they are known on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from lehr.plugins.remote.records import PluginRecord

__all__ = ["PluginRecord", "known_validators", "plugin_log", "plugin_records"]


def plugin_records(state: Path) -> list[PluginRecord]:
    """Those of the `lehr run` that uses a state folder."""
    from lehr.plugins.remote.records import records

    return records(state)


def known_validators(state: Path) -> dict[str, tuple[str, ...]]:
    """The validators that programs have asked which use a state folder, by plugin; none without the extra."""
    if not (state / "plugins").is_dir():  # as `lehr.plugins.remote.records.FOLDER`, which needs the extra
        return {}
    try:
        from lehr.plugins.remote.records import known_validators
    except ImportError:
        return {}
    return known_validators(state)


def plugin_log(state: Path, name: str) -> list[Path]:
    """The files of a plugin's log, the older first; none if it has printed nothing."""
    from lehr.plugins.remote.records import log_paths

    return log_paths(state, name)
