"""Starter workspaces for `lehr init` and the demo.

In: the name of a template, and a directory. Out: its files there, with the directory's name as partition.

Architecture invariant: existing files are never overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lehr.base.errors import LehrError, raised_as
from lehr.model.asset import partition_problem

FOLDER = Path(__file__).parent
"""Contains a folder for each template."""

IGNORE = ".gitignore"
_PLACEHOLDER = "partition: hello"


class Template(NamedTuple):
    """A starter workspace.

    Attributes:
        about: what it creates.
        change: where to edit next.
        needs: additional software to install.
    """

    about: str
    change: str
    needs: str = ""


TEMPLATES: Mapping[str, Template] = {
    "basic": Template("a file and a command, as plain assets", "assets/"),
    "hello": Template("a small web service with two replicas, made by a generator", "sites/"),
    "web-service": Template("a service with configuration files, in plain YAML", "services/"),
    "database": Template("a SQLite database with tables, an index and rows, in plain YAML", "services/"),
    "shakespeare": Template(
        "a service in clusters behind Envoy, with PostgreSQL", "frontend.yaml", "pip install 'lehr[demo]'"
    ),
}
"""All templates, by name; the simplest first."""


def write_template(template: str, directory: Path) -> list[str]:
    """Copy a template into `directory`, which may exist. Returns the paths written, relative.

    An existing `.gitignore` is left unchanged.

    Raises:
        LehrError: a file exists (then nothing is written), or cannot be written.
    """
    source = FOLDER / template
    files = {
        path.relative_to(source): path.read_text()
        for path in sorted(source.rglob("*"))
        if path.is_file() and not _made_by_running(path.relative_to(source))
    }
    if (directory / IGNORE).exists():
        del files[Path(IGNORE)]
    in_the_way = [str(path) for path in files if (directory / path).exists()]
    if in_the_way:
        raise LehrError(
            f"{directory} already contains {', '.join(in_the_way)}",
            code="CLI114",
            why="`lehr init` never overwrites a file",
            fix="choose another directory",
        )
    files[Path("lehr.yaml")] = _named(files[Path("lehr.yaml")], directory)
    with raised_as(LehrError, f"{directory} cannot be written", code="CLI115"):
        for path, text in files.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(text)
    return [str(path) for path in files]


def _made_by_running(path: Path) -> bool:
    """Files left behind by a run in the template's own folder, ignored by git."""
    return path.parts[0] == "production" or "__pycache__" in path.parts


def _named(workspace: str, directory: Path) -> str:
    """The workspace file with the directory's name as the partition's, where that is a valid one."""
    name = directory.resolve().name.lower()
    return workspace if partition_problem(name) else workspace.replace(_PLACEHOLDER, f"partition: {name}", 1)
