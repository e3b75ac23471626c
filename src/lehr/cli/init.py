"""`lehr init`: a first working workspace."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from lehr.base.errors import LehrError
from lehr.cli.command import command
from lehr.cli.output import Column, Shape, output_option, show
from lehr.templates import IGNORE, TEMPLATES, write_template


@command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default="basic",
    show_default=True,
    help="Template to start from. --list-templates describes each.",
)
@click.option("--list-templates", "listing", is_flag=True, help="List the templates and exit.")
@click.option("--no-git", is_flag=True, help="Only create files. A plain directory can be a source as well.")
@output_option("table", "json", "yaml", "name")
def init(directory: Path | None, template: str, listing: bool, no_git: bool, form: str) -> None:
    """Create a workspace in DIRECTORY, with a git repository and a first commit.

    Existing files are never overwritten. In an existing git repository, files are added but not
    committed: review and commit them yourself. -o applies to --list-templates.

    Examples:
        lehr init x && cd x && lehr run --once
        lehr init --template web-service shop
        lehr init .                          in an existing repository
        lehr init --list-templates
    """
    if listing:
        _list(form)
        return
    if directory is None:
        raise click.UsageError("Name the DIRECTORY to create; `.` is the current one.")
    written = write_template(template, directory)
    commits = not no_git and first_commit(directory, written)
    _print_next_steps(directory, template, written, commits=commits)


def _list(form: str) -> None:
    columns = (
        Column[str]("TEMPLATE", lambda name: name),
        Column[str]("DESCRIPTION", lambda name: TEMPLATES[name].about),
        Column[str]("NEEDS", lambda name: TEMPLATES[name].needs),
    )

    def document(name: str) -> dict[str, str]:
        return {"name": name, **TEMPLATES[name]._asdict()}

    show(form, list(TEMPLATES), Shape(columns, document, lambda name: name), nothing="")


def first_commit(directory: Path, paths: Sequence[str]) -> bool:
    """Make `directory` a git repository with `paths` in its first commit.

    Returns False and does nothing if git is missing or `directory` is in a repository.

    Raises:
        LehrError: git refuses.
    """
    try:
        if _git(directory, "rev-parse", "--git-dir").returncode == 0:
            return False
    except FileNotFoundError:
        return False
    _checked(directory, "init", "--quiet", "--initial-branch=main")
    _checked(directory, "add", "--", *paths)
    # The user may not have configured a name for git yet.
    known = _git(directory, "var", "GIT_COMMITTER_IDENT").returncode == 0
    identity = () if known else ("-c", "user.name=lehr init", "-c", "user.email=lehr@localhost")
    unattended = ("-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")
    _checked(directory, *identity, *unattended, "commit", "--quiet", "-m", "Create a Lehr workspace")
    return True


def _git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=False
    )


def _checked(directory: Path, *arguments: str) -> None:
    done = _git(directory, *arguments)
    if done.returncode:
        raise LehrError(
            f"the files are in {directory}, but `git {arguments[0]}` failed",
            code="CLI116",
            why=done.stderr.strip(),
            fix="fix that and commit the files, or start again with --no-git in another directory",
        )


def _print_next_steps(directory: Path, template: str, written: Sequence[str], *, commits: bool) -> None:
    what = "and committed it" if commits else f"with {len(written)} files"
    click.echo(f"Created workspace {directory} from template {template} {what}.")
    repository = (directory / ".git").exists()
    if IGNORE not in written:
        click.echo(f"Add /production/ to your {IGNORE}.")
    if repository and not commits:
        click.echo("Commit the new files first: Lehr only reads what is committed.")
    here = "" if directory.resolve() == Path.cwd() else f"cd {directory} && "
    saving = "change and commit" if repository else "change"
    if TEMPLATES[template].needs:
        click.echo(f"It needs additional programs: {TEMPLATES[template].needs}")
    click.echo("Next steps:")
    steps = (
        (f"{here}lehr run --once", "apply it to production once"),
        ("lehr why --all", "show what is not as intended, and why"),
        ("lehr run", f"keep running; {saving} {TEMPLATES[template].change} and watch"),
    )
    width = max(len(call) for call, _purpose in steps)
    for call, purpose in steps:
        click.echo(f"  {call.ljust(width)}  {purpose}")
