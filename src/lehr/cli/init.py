"""`lehr init`: a first workspace that runs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from lehr.base.errors import LehrError
from lehr.cli.output import Column, Shape, output_option, show
from lehr.templates import IGNORE, TEMPLATES, write_template


@click.command(
    epilog="""
    \b
    Examples:
      lehr init x && cd x && lehr run --once
      lehr init --template web-service shop
      lehr init .                          in a repository that you have
      lehr init --list-templates
    """
)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default="basic",
    show_default=True,
    help="What to begin with; --list-templates tells what each is.",
)
@click.option("--list-templates", "listing", is_flag=True, help="List the templates, and make nothing.")
@click.option("--no-git", is_flag=True, help="Make files only; a plain directory is a source, too.")
@output_option("table", "json", "yaml", "name")
def init(directory: Path | None, template: str, listing: bool, no_git: bool, form: str) -> None:
    """Make a workspace in DIRECTORY, with a git repository and a first commit.

    Nothing that exists is overwritten. In a git repository that you have, the files are only
    added: look at them, and commit them yourself. -o is for --list-templates.
    """
    if listing:
        _list(form)
        return
    if directory is None:
        raise click.UsageError("Name the DIRECTORY to make; `.` is the current one.")
    written = write_template(template, directory)
    commits = not no_git and first_commit(directory, written)
    _say_what_is_next(directory, template, written, commits=commits)


def _list(form: str) -> None:
    columns = (
        Column[str]("TEMPLATE", lambda name: name),
        Column[str]("WHAT IT IS", lambda name: TEMPLATES[name].about),
        Column[str]("NEEDS", lambda name: TEMPLATES[name].needs),
    )

    def document(name: str) -> dict[str, str]:
        return {"name": name, **TEMPLATES[name]._asdict()}

    show(form, list(TEMPLATES), Shape(columns, document, lambda name: name), nothing="")


def first_commit(directory: Path, paths: Sequence[str]) -> bool:
    """Make `directory` a git repository that has `paths` in its first commit.

    Returns False, and does nothing, without git, or where `directory` is in a repository.

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
    # A user who has not given git a name yet need not do it now.
    known = _git(directory, "var", "GIT_COMMITTER_IDENT").returncode == 0
    identity = () if known else ("-c", "user.name=lehr init", "-c", "user.email=lehr@localhost")
    unattended = ("-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")
    _checked(directory, *identity, *unattended, "commit", "--quiet", "-m", "A first workspace of Lehr")
    return True


def _git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=False
    )


def _checked(directory: Path, *arguments: str) -> None:
    done = _git(directory, *arguments)
    if done.returncode:
        raise LehrError(
            f"the files are in {directory}, but git {arguments[0]} failed",
            code="CLI116",
            why=done.stderr.strip(),
            fix="mend that and commit them; or start again with --no-git, in another directory",
        )


def _say_what_is_next(directory: Path, template: str, written: Sequence[str], *, commits: bool) -> None:
    what = "a first commit" if commits else f"{len(written)} files"
    click.echo(f"{directory} is a workspace now, made from template {template}, with {what}.")
    repository = (directory / ".git").exists()
    if IGNORE not in written:
        click.echo(f"Add /production/ to your {IGNORE}.")
    if repository and not commits:
        click.echo("Commit the new files first: of a git repository, Lehr reads what is committed.")
    here = "" if directory.resolve() == Path.cwd() else f"cd {directory} && "
    saving = "change and commit" if repository else "change"
    if TEMPLATES[template].needs:
        click.echo(f"It needs programs that Lehr itself does not: {TEMPLATES[template].needs}")
    click.echo(f"  {here}lehr run --once     make production as it says")
    click.echo("  lehr why --all          why it is as it is")
    click.echo(f"  lehr run                go on doing so: {saving} {TEMPLATES[template].change}, and watch")
