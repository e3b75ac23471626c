"""The unit of systemd that keeps `lehr run` running. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

MARK = "# Written by `lehr service install`, which overwrites it. Change it with `systemctl edit`."
"""First line of every unit that Lehr has written, and so may replace and remove."""

WATCHDOG_SECONDS = 60
_STOP_SECONDS = 90
"""Longer than `lehr run` takes at most: it ends by force after a minute."""

_USAGE = 2
"""Exit code of a wrong call, which no restart corrects."""

_PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)


class ServiceUnit(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the unit is made from. All texts must be printable.

    Attributes:
        command: program and arguments of `lehr run`.
        workspace: for its description.
        folder: that it runs in.
        environment: variables that are not secret.
        environment_file: has variables that are secret, if it exists.
        system: of the system, and not of a user.
    """

    command: Sequence[str]
    workspace: str
    folder: Path
    environment: Mapping[str, str]
    environment_file: Path
    system: bool

    def text(self) -> str:
        """The unit file."""
        variables = (f"{name}={value}" for name, value in self.environment.items())
        return "\n".join(
            [
                MARK,
                "[Unit]",
                f"Description=Lehr keeps production as {_specifier(self.workspace)} declares it",
                *(["Wants=network-online.target", "After=network-online.target"] if self.system else []),
                "StartLimitIntervalSec=0",
                "",
                "[Service]",
                "Type=notify",
                "NotifyAccess=main",
                *(["# Sets HOME, where git reads its configuration.", "User=root"] if self.system else []),
                f"WorkingDirectory={_specifier(str(self.folder))}",
                *(f"Environment={_in_quotes(_specifier(variable))}" for variable in variables),
                f"EnvironmentFile=-{_specifier(str(self.environment_file))}",
                f"ExecStart={' '.join(map(quoted, self.command))}",
                "ExecReload=/bin/kill -HUP $MAINPID",
                "TimeoutStartSec=10min",
                f"TimeoutStopSec={_STOP_SECONDS}",
                "Restart=on-failure",
                "RestartSec=5",
                f"RestartPreventExitStatus={_USAGE}",
                f"WatchdogSec={WATCHDOG_SECONDS}",
                "# A core dump would contain secrets.",
                "WatchdogSignal=SIGKILL",
                "# Supervised processes are in this unit, and must survive a stop, crash or upgrade of Lehr.",
                "KillMode=process",
                "OOMPolicy=continue",
                "# The tasks of all supervised processes count here.",
                "TasksMax=infinity",
                "",
                "[Install]",
                f"WantedBy={'multi-user.target' if self.system else 'default.target'}",
                "",
            ]
        )


def quoted(argument: str) -> str:
    """An argument of `ExecStart`, which systemd reads back unchanged."""
    text = _specifier(argument).replace("$", "$$")
    return text if _PLAIN.fullmatch(text) else _in_quotes(text)


def _in_quotes(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _specifier(text: str) -> str:
    return text.replace("%", "%%")


def unit_name(name: str) -> str:
    """The name of the unit for a workspace of this name."""
    return f"lehr-{re.sub(r'[^A-Za-z0-9_.-]', '-', name).strip('-.') or 'workspace'}.service"
