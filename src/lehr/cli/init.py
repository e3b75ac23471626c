"""`lehr init`: a first workspace that runs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from lehr.base.errors import LehrError
from lehr.cli.output import Column, Shape, output_option, show
from lehr.model.asset import partition_problem

TEMPLATES = Path(__file__).parent / "templates"

_IGNORE = ".gitignore"
_PLACEHOLDER = "partition: hello"


class Template(NamedTuple):
    """A workspace to begin with.

    Attributes:
        about: what it makes.
        change: where people go on writing.
        needs: what has to be installed beside Lehr.
    """

    about: str
    change: str
    needs: str = ""


KINDS: Mapping[str, Template] = {
    "basic": Template("a file and a command, as plain assets", "assets/"),
    "hello": Template("a small web program in two replicas, by a generator of its own", "sites/"),
    "web-service": Template("a service with its configuration in two places, from YAML alone", "services/"),
    "database": Template("a SQLite database: tables, an index and rows, from YAML alone", "services/"),
    "shakespeare": Template(
        "a service in clusters behind Envoy, with a PostgreSQL", "frontend.yaml", "pip install 'lehr[demo]'"
    ),
}
"""All templates, by name; the simplest first."""


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
    type=click.Choice(list(KINDS)),
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
        Column[str]("WHAT IT IS", lambda name: KINDS[name].about),
        Column[str]("NEEDS", lambda name: KINDS[name].needs),
    )

    def document(name: str) -> dict[str, str]:
        return {"name": name, **KINDS[name]._asdict()}

    show(form, list(KINDS), Shape(columns, document, lambda name: name), nothing="")


def write_template(template: str, directory: Path) -> list[str]:
    """Copy a template into `directory`, which may exist. Returns the paths written, relative.

    A `.gitignore` that exists is left as it is.

    Raises:
        LehrError: a file is in the way (then nothing is written), or cannot be written.
    """
    source = TEMPLATES / template
    files = {
        path.relative_to(source): path.read_text()
        for path in sorted(source.rglob("*"))
        if path.is_file() and not _made_by_running(path.relative_to(source))
    }
    if (directory / _IGNORE).exists():
        del files[Path(_IGNORE)]
    in_the_way = [str(path) for path in files if (directory / path).exists()]
    if in_the_way:
        raise LehrError(
            f"{directory} has {', '.join(in_the_way)} already",
            why="`lehr init` overwrites nothing",
            fix="choose another directory",
        )
    files[Path("lehr.yaml")] = _named(files[Path("lehr.yaml")], directory)
    try:
        for path, text in files.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(text)
    except OSError as error:
        raise LehrError(f"{directory} cannot be written", why=error.strerror or str(error)) from error
    return [str(path) for path in files]


def first_commit(directory: Path, paths: Sequence[str]) -> bool:
    """Make `directory` a git repository that has `paths` in its first commit.

    Returns False, and does nothing, where there is no git, or `directory` is in a repository.

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
    # Whoever has not told git a name yet shall not have to do it now.
    known = _git(directory, "var", "GIT_COMMITTER_IDENT").returncode == 0
    identity = () if known else ("-c", "user.name=lehr init", "-c", "user.email=lehr@localhost")
    unattended = ("-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")
    _checked(directory, *identity, *unattended, "commit", "--quiet", "-m", "A first workspace of Lehr")
    return True


def _made_by_running(path: Path) -> bool:
    """What a run in the template's own folder leaves there, and git ignores."""
    return path.parts[0] == "production" or "__pycache__" in path.parts


def _named(workspace: str, directory: Path) -> str:
    """The workspace file with the directory's name as the partition's, where that is a valid one."""
    name = directory.resolve().name.lower()
    return workspace if partition_problem(name) else workspace.replace(_PLACEHOLDER, f"partition: {name}", 1)


def _git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=False
    )


def _checked(directory: Path, *arguments: str) -> None:
    done = _git(directory, *arguments)
    if done.returncode:
        raise LehrError(
            f"the files are in {directory}, but git {arguments[0]} failed",
            why=done.stderr.strip(),
            fix="mend that and commit them; or start again with --no-git, in another directory",
        )


def _say_what_is_next(directory: Path, template: str, written: Sequence[str], *, commits: bool) -> None:
    what = "a first commit" if commits else f"{len(written)} files"
    click.echo(f"{directory} is a workspace now, made from template {template}, with {what}.")
    repository = (directory / ".git").exists()
    if _IGNORE not in written:
        click.echo(f"Add /production/ to your {_IGNORE}.")
    if repository and not commits:
        click.echo("Commit the new files first: of a git repository, Lehr reads what is committed.")
    here = "" if directory.resolve() == Path.cwd() else f"cd {directory} && "
    saving = "change and commit" if repository else "change"
    if KINDS[template].needs:
        click.echo(f"It needs programs that Lehr itself does not: {KINDS[template].needs}")
    click.echo(f"  {here}lehr run --once     make production as it says")
    click.echo("  lehr why --all          why it is as it is")
    click.echo(f"  lehr run                go on doing so: {saving} {KINDS[template].change}, and watch")
