"""What a service calls: `lehr run` with the options and the environment of the person who installs it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from lehr.base.errors import LehrError
from lehr.cli.service.systemd import Unit
from lehr.cli.stored import STORE_VARIABLE
from lehr.control.service_unit import ServiceUnit
from lehr.secrets.identities import IDENTITY, IDENTITY_FILE

_FILES = ("LEHR_SIGNED_BY", "LEHR_HOOK_SECRET", "LEHR_METRICS", IDENTITY_FILE)
_SECRET = (STORE_VARIABLE, IDENTITY)


def service_unit(unit: Unit, location: str, state: Path | None, options: tuple[str, ...]) -> ServiceUnit:
    """The unit for the workspace at `location`.

    Raises:
        LehrError: there is no workspace at `location`, or the service would not have a secret that it needs.
        UsageError: `lehr run` does not accept these options.
    """
    from lehr.cli.deployment import deployment_of

    deployment = deployment_of(location, state)
    folder = Path(location).expanduser()
    workspace = str(folder.absolute()) if folder.exists() else location
    arguments = [workspace, "--state", str(deployment.state), *options]
    _require_accepted(arguments, unit)
    _require_environment_file(unit)
    environment = {name: os.path.abspath(os.environ[name]) for name in _FILES if os.environ.get(name)}
    # -P: otherwise modules in the working directory would replace those of Lehr.
    command = [sys.executable, "-P", "-m", "lehr", "run", *arguments]
    if not all(map(str.isprintable, [*command, str(deployment.base), *environment.values()])):
        raise click.UsageError("A unit cannot hold paths or options with unprintable characters.")
    return ServiceUnit(
        command=command,
        workspace=workspace,
        folder=deployment.base,
        environment=environment,
        environment_file=unit.environment_file,
        system=unit.system,
    )


def _require_accepted(arguments: list[str], unit: Unit) -> None:
    """Refuses what the service could not start with, or would read elsewhere."""
    from lehr.cli.run import run

    with run.make_context("lehr run", list(arguments)) as context:
        if context.params["once"]:
            raise click.UsageError("A service runs continuously; remove --once.")
        if context.params["selected"] is not None:
            raise click.UsageError(f"A service enforces all assets; remove {context.params['selected']}.")
        for option in run.params:
            value = context.params.get(option.name or "")
            if isinstance(value, Path) and not value.is_absolute() and _written(context, option):
                raise click.UsageError(f"{option.opts[0]} of a service must be an absolute path.")
    if any(_has_password(part) for argument in arguments for part in argument.split("=", 1)):
        raise LehrError(
            "an address among the options contains a password",
            code="CLI182",
            why="every user can read a unit",
            fix=f"write {STORE_VARIABLE}=... to {unit.environment_file} (mode 0600); for git, use a "
            "credential helper",
        )


def _has_password(text: str) -> bool:
    try:
        return bool(urlsplit(text).password)
    except ValueError:
        return False


def _written(context: click.Context, option: click.Parameter) -> bool:
    return context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE


def _require_environment_file(unit: Unit) -> None:
    """Refuses variables that are set here, may be secret, and would be missing in the service."""
    for name in _SECRET:
        if os.environ.get(name) and not _sets(unit.environment_file, name):
            raise LehrError(
                f"{name} is set here, and the service would not have it",
                code="CLI183",
                why="it may be secret, and every user can read a unit",
                fix=f"write it to {unit.environment_file} (mode 0600), or unset it",
            )


def _sets(file: Path, name: str) -> bool:
    try:
        lines = file.read_text().splitlines()
    except (OSError, ValueError):
        return False
    return any(line.strip().startswith(f"{name}=") for line in lines)
