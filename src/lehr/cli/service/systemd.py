"""systemd on this machine, as the commands of `lehr service` use it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lehr.base.durable import replace
from lehr.base.errors import LehrError, raised_as
from lehr.cli.complete import complete_folder
from lehr.control.service_unit import MARK, unit_name

F = TypeVar("F", bound=Callable[..., Any])


def service_options(function: F) -> F:
    """The argument DIR and the options that name a unit."""
    for option in (
        click.option(
            "--name",
            help="Name of the unit, without `lehr-`. Defaults to the name of the workspace's folder.",
        ),
        click.option(
            "--system/--user",
            "system",
            default=None,
            help="A service of the system or of your user. Defaults to --system for root.",
        ),
        click.argument("location", metavar="[DIR]", default=".", shell_complete=complete_folder),
    ):
        function = option(function)
    return function


class Unit:
    """A unit of the system or of this user.

    Attributes:
        name: with its suffix.
        path: of its file.
        environment_file: has its secret variables, if it exists.
    """

    def __init__(self, location: str, name: str | None, *, system: bool | None) -> None:
        self.system = os.geteuid() == 0 if system is None else system
        self.name = unit_name(name or Path(location).expanduser().resolve().name.removesuffix(".git"))
        short = self.name.removeprefix("lehr-").removesuffix(".service")
        folder = Path("/etc") if self.system else _user_configuration()
        self.path = folder / "systemd" / ("system" if self.system else "user") / self.name
        self.environment_file = folder / "lehr" / f"{short}.env"

    def written(self) -> str | None:
        """The content of its file; None if there is none.

        Raises:
            LehrError: another program or a person has written it, or it cannot be read.
        """
        if not self.path.exists():
            return None
        with raised_as(LehrError, f"{self.path} cannot be read", code="CLI175", on=(OSError, ValueError)):
            found = self.path.read_text()
        if not found.startswith(MARK):
            raise LehrError(
                f"{self.path} was not written by `lehr service install`",
                code="CLI176",
                fix="choose another --name, or remove the file yourself",
            )
        return found

    def write(self, text: str) -> None:
        """Write its file.

        Raises:
            LehrError: the system does not permit it.
        """
        with raised_as(LehrError, f"{self.path} cannot be written", code="CLI177"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace(self.path, text.encode(), 0o644)

    def command(self, *arguments: str) -> list[str]:
        """A call of systemctl."""
        return ["systemctl", *([] if self.system else ["--user"]), *arguments]

    @property
    def journal(self) -> str:
        """The command that shows its log."""
        return f"journalctl {'' if self.system else '--user '}-u {self.name}"

    def call(self, *arguments: str) -> None:
        """Call systemctl, and print the call.

        Raises:
            LehrError: it failed.
        """
        command = shlex.join(self.command(*arguments))
        print(f"  {command}", flush=True)
        done = self._run(*arguments)
        if done.returncode:
            raise LehrError(
                f"`{command}` failed",
                code="CLI178",
                why=" ".join(done.stderr.split()) or f"exit code {done.returncode}",
                fix=f"see `{self.journal} -e`",
            )

    def properties(self, *names: str) -> dict[str, str]:
        """Properties as systemd reports them; empty where the unit is not known."""
        printed = self._run("show", self.name, f"--property={','.join(names)}").stdout
        return dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)

    def require_systemd(self) -> None:
        """Raises `LehrError` unless systemd manages this machine, or the services of this user."""
        if shutil.which("systemctl") is None or not Path("/run/systemd/system").is_dir():
            raise LehrError(
                "systemd does not manage this machine",
                code="CLI179",
                fix="run `lehr run` under its service manager; `install --dry-run` prints an example",
            )
        if not self.system and self._run("show-environment").returncode:
            raise LehrError(
                "the service manager of this user does not answer",
                code="CLI180",
                fix="log in, or run `loginctl enable-linger`; a shell of su or sudo has none",
            )

    def require_permission(self) -> None:
        """Raises `LehrError` if this user may not change the unit."""
        if self.system and os.geteuid():
            raise LehrError(
                "only root can change services of the system",
                code="CLI181",
                fix="run it with sudo, or pass --user",
            )


def _user_configuration() -> Path:
    named = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(named) if named.startswith("/") else Path("~/.config").expanduser()
