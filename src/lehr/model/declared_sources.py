"""The settings `sources` of `lehr.yaml`: further sources of truth, next to the one that holds the file.

sources:
  catalogue: {git: ssh://git@example.org/catalogue.git, branch: main, path: services}
  shared: {directory: ../shared}
  rows: {sql: "sqlite:inventory.sqlite", query: SELECT name, size FROM cluster, key: [name]}
  staging: {partition: staging, state: ../staging, incarnation: 42, digest: 6f1a...}

The files of each are in the snapshot below `sources/NAME/`. Pure: nothing here reads a source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from lehr.model.asset import partition_problem

WORKSPACE_FILE = "lehr.yaml"
FOLDER = "sources"
"""The folder of the snapshot below which further sources are mounted."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?")
_COMMIT = re.compile(r"[0-9a-f]{40}")

Text = Annotated[str, msgspec.Meta(min_length=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0.1, le=86_400)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class GitPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The newest commit of a repository; or one that is named.

    Attributes:
        git: path, URL or `host:path`.
        branch, tag, commit: at most one; without any the repository's own branch is followed.
        path: the directory in the repository that counts.
        signed_by: public keys, one of which must have signed the commit; empty if none is required.
        poll: maximum seconds between two checks.
    """

    git: Text
    branch: Text | None = None
    tag: Text | None = None
    commit: Text | None = None
    path: str = ""
    signed_by: tuple[Text, ...] = ()
    poll: Seconds = 10.0

    def __post_init__(self) -> None:
        named = [name for name in ("branch", "tag", "commit") if getattr(self, name) is not None]
        if len(named) > 1:
            raise ValueError(f"`{named[0]}` and `{named[1]}` exclude each other")
        if self.commit is not None and not _COMMIT.fullmatch(self.commit):
            raise ValueError("`commit` must be the full id of a commit: 40 hexadecimal digits")
        if self.path.startswith("/") or ".." in self.path.split("/"):
            raise ValueError("`path` is outside the repository")
        if _holds_password(self.git):
            raise ValueError("`git` holds a password, and many can read intent: use a credential helper")


class DirectoryPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The files of a directory, as they are.

    Attributes:
        directory: its path.
        poll: seconds between two checks.
    """

    directory: Text
    poll: Seconds = 2.0


class SqlPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows of a database, as one file `rows.json`.

    Attributes:
        sql: the database, as in `lehr.DatabaseSchema`, without a password.
        query: one SELECT.
        key: columns that identify a row, and by which rows are ordered.
        may_be_empty: whether an empty result is valid; otherwise it is an error.
        poll: seconds between two checks.
    """

    sql: Text
    query: Text
    key: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    may_be_empty: bool = False
    poll: Seconds = 60.0

    def __post_init__(self) -> None:
        if not self.sql.startswith(("postgresql://", "sqlite:")):
            raise ValueError("`sql` must start with postgresql:// or sqlite:")
        if _holds_password(self.sql):
            why = "and many can read intent: use a socket, a certificate or `passfile`"
            raise ValueError(f"`sql` holds a password, {why}")


class PartitionPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An incarnation of another partition, one file for each asset.

    Attributes:
        partition: its name.
        state: state folder of the Lehr that published it.
        archive: or a file that `lehr store export` wrote.
        incarnation: sequence of the incarnation.
        digest: of the incarnation; another content under the same name is refused.
    """

    partition: Text
    incarnation: Count
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")]
    state: Text | None = None
    archive: Text | None = None

    def __post_init__(self) -> None:
        if (self.state is None) is (self.archive is None):
            raise ValueError("write one of `state` (a state folder) and `archive` (an exported file)")
        problem = partition_problem(self.partition)
        if problem is not None:
            raise ValueError(f"`partition` is not a valid name: {problem}")

    @property
    def name(self) -> str:
        """`PARTITION@SEQUENCE`."""
        return f"{self.partition}@{self.incarnation}"


DeclaredSource = GitPlace | DirectoryPlace | SqlPlace | PartitionPlace

KINDS: Mapping[str, type[DeclaredSource]] = {
    "git": GitPlace,
    "directory": DirectoryPlace,
    "sql": SqlPlace,
    "partition": PartitionPlace,
}
"""By the key that identifies each kind of source."""


def name_problem(name: str) -> str | None:
    """Why `name` is not a valid source name; None when it can."""
    if _NAME.fullmatch(name):
        return None
    return "a name has 1 to 63 lower-case letters, digits, inner hyphens and underscores"


def kind_of(value: Any) -> type[DeclaredSource] | None:
    """The one kind that `value` (plain data) declares; None if it declares none, or several."""
    found = [kind for key, kind in KINDS.items() if isinstance(value, dict) and key in value]
    return found[0] if len(found) == 1 else None


def reveals_password(value: Any) -> bool:
    """Whether a declaration (plain data) holds a password, so that its line must not be shown."""
    places = (value.get(key) for key in ("git", "sql")) if isinstance(value, dict) else ()
    return any(isinstance(place, str) and _holds_password(place) for place in places)


def declared_sources(value: Any) -> dict[str, DeclaredSource]:
    """The sources that the plain data below `sources` declares, by name.

    Raises:
        ValueError: there is a mistake in it.
    """
    if not isinstance(value, dict):
        raise ValueError("`sources` is not a mapping")
    found: dict[str, DeclaredSource] = {}
    for name, item in value.items():
        kind = kind_of(item)
        if kind is None or name_problem(name) is not None:
            raise ValueError(f"{name} is not a source")
        found[name] = msgspec.convert(item, kind)  # its errors are ValueErrors
    return found


def mount_of(name: str) -> str:
    """The folder of the snapshot that holds the files of the source `name`."""
    return f"{FOLDER}/{name}"


def _holds_password(location: str) -> bool:
    if "://" not in location:
        return False
    try:
        parts = urlsplit(location)
        token = parts.scheme in ("http", "https") and bool(parts.username)
        return parts.password is not None or token or "password" in dict(parse_qsl(parts.query))
    except ValueError:
        return False
