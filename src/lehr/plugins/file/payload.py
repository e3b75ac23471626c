"""The payloads of `lehr.File`, `lehr.Symlink` and `lehr.Directory`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec

from lehr.base.errors import StalledError
from lehr.model.secret import Secret
from lehr.model.types import AssetType
from lehr.model.workspace_file import WorkspaceFile
from lehr.sdk.secrets import SecretValue

FILE = "lehr.File"
SYMLINK = "lehr.Symlink"
DIRECTORY = "lehr.Directory"

TEMPORARY = ".lehr-tmp"
"""The file `x` is written as `.x.lehr-tmp` next to it and then renamed."""

FENCED = ".lehr-fenced"
"""The file `x`, taken out of service and not yet removed, is `x.lehr-fenced` next to it."""

PLACE = "{file}"
"""In `validate`, the path of the new content."""

MOST_VALIDATE_SECONDS = 300.0

_ORDINARY = re.compile(r"/?(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST_PART = 255
_LONGEST_NAME = _LONGEST_PART - max(len("." + TEMPORARY), len(FENCED))

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@$-]*$", max_length=64)]


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One regular file of the machine that Lehr runs on.

    Attributes:
        path: absolute, or relative to the base directory of the deployment; with neither `.` nor `..`. Parent
            directories may be symbolic links.
        content: the content as text, stored as UTF-8.
        content_base64: the content as bytes.
        content_secret: where the content is kept, if it is a secret. `mode` must then not let other users
            read it (`"0600"`, `"0640"`).
        source: a file of the workspace that has the content: any bytes, up to 10 MB. Exactly one of the four
            must be given.
        mode: permissions as 3 or 4 octal digits.
        owner, group: names or numbers; left unchanged by default.
        make_parents: create missing parent directories.
        validate: a program and its arguments, run without a shell before new content takes its place.
            `{file}` becomes the path of the new content. With an exit code other than 0 the file stays as it
            is, and the last lines of the output are shown.
        validate_timeout_seconds: the time that `validate` has until it is killed.
    """

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    content: str | None = None
    content_base64: bytes | None = None
    content_secret: Secret | None = None
    source: WorkspaceFile | str | None = None
    mode: Annotated[str, msgspec.Meta(pattern="^[0-7]{3,4}$")] = "0644"
    owner: Name | None = None
    group: Name | None = None
    make_parents: bool = True
    validate: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    validate_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=MOST_VALIDATE_SECONDS)] = 30.0

    def __post_init__(self) -> None:
        if problem := path_problem(self.path):
            raise ValueError(f"`path` {problem}")
        if isinstance(self.source, str):
            msgspec.structs.force_setattr(self, "source", WorkspaceFile(self.source))
        contents = (self.content, self.content_base64, self.content_secret, self.source)
        if contents.count(None) != len(contents) - 1:
            raise ValueError(
                "exactly one of `content`, `content_base64`, `content_secret` and `source` must be given"
            )
        if self.content_secret is not None and self.permissions & 0o007:
            raise ValueError(f'`mode` {self.mode} lets every user read a secret; write `mode: "0600"`')
        if self.validate is not None and (problem := _command_problem(self.validate)):
            raise ValueError(f"`validate` {problem}")

    @property
    def data(self) -> bytes | None:
        """The content, if intent holds it."""
        if self.content_base64 is not None:
            return self.content_base64
        return None if self.content is None else self.content.encode()

    @property
    def workspace_file(self) -> WorkspaceFile | None:
        """The file of the workspace that has the content, if one has."""
        assert not isinstance(self.source, str)
        return self.source

    @property
    def permissions(self) -> int:
        """The mode as a number."""
        return int(self.mode, 8)


class Symlink(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One symbolic link of the machine that Lehr runs on.

    Attributes:
        path: where the link is; absolute, or relative to the base directory of the deployment; with neither
            `.` nor `..`. Parent directories may be symbolic links.
        target: where it leads, exactly as stored in the link; a relative one starts from the directory of the
            link. It need not exist.
        owner, group: names or numbers, of the link itself; left unchanged by default.
        make_parents: create missing parent directories.
    """

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    target: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    owner: Name | None = None
    group: Name | None = None
    make_parents: bool = True

    def __post_init__(self) -> None:
        if problem := path_problem(self.path):
            raise ValueError(f"`path` {problem}")
        if _CONTROL.search(self.target):
            raise ValueError("`target` has a control character")


class Directory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One directory of the machine that Lehr runs on. Its entries are assets of their own, or not Lehr's.

    Attributes:
        path: absolute, or relative to the base directory of the deployment; with neither `.` nor `..`. Parent
            directories may be symbolic links.
        mode: permissions as 3 or 4 octal digits.
        owner, group: names or numbers; left unchanged by default.
        make_parents: create missing parent directories.
        exclusive: entries that no other asset declares differ from intent. They are removed once a person
            has approved it.
        declared: names of the entries that other assets declare. Lehr fills it in for an exclusive directory.
    """

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    mode: Annotated[str, msgspec.Meta(pattern="^[0-7]{3,4}$")] = "0755"
    owner: Name | None = None
    group: Name | None = None
    make_parents: bool = True
    exclusive: bool = False
    declared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if problem := path_problem(self.path):
            raise ValueError(f"`path` {problem}")
        if self.declared and not self.exclusive:
            raise ValueError("`declared` is filled in by Lehr; leave it out")

    @property
    def permissions(self) -> int:
        """The mode as a number."""
        return int(self.mode, 8)


Contents = Callable[[str, str], bytes | None]
"""The content of a file of the workspace, by path and digest; None if it was not kept. Blocks."""


class Intended(NamedTuple):
    """An intended file, with its content if that is a secret, or where to find it."""

    file: File
    secret: SecretValue | None = None
    contents: Contents = lambda path, digest: None

    def data(self) -> bytes:
        """The intended content. Blocks.

        Raises:
            StalledError: it is in a file of the workspace that was not kept.
        """
        if self.secret is not None:
            return self.secret.content()
        source = self.file.workspace_file
        if source is None:
            return self.file.data or b""
        found = None if source.digest is None else self.contents(source.file, source.digest)
        if found is None:
            raise StalledError(
                f"the file {source.file} of this revision is not available",
                code="FIL122",
                why="the files of this incarnation were not kept, or are not on this machine",
                fix="publish it again: change the file, and commit it",
            )
        return found


def path_problem(path: str) -> str | None:
    """Why `path` is not valid for a file; None if it is."""
    reserved = path.endswith((TEMPORARY, FENCED))
    if len(path) <= _LONGEST_NAME and not reserved and _ORDINARY.fullmatch(path):
        return None  # as almost all, in a fifth of the time
    if _CONTROL.search(path):
        return "has a control character"
    parts = path.removeprefix("/").split("/")
    if not all(parts):
        return "has an empty part: it must not end with a slash or have two in a row"
    if not {".", ".."}.isdisjoint(parts):
        return "has a part `.` or `..`: write the path without it"
    if len(path.encode(errors="replace")) > _LONGEST_NAME and (problem := _length_problem(parts)):
        return problem
    if reserved:
        return f"ends with {TEMPORARY} or {FENCED}, which Lehr reserves"
    return None


def _command_problem(command: Sequence[str]) -> str | None:
    if not command[0]:
        return "has no program: its first part is empty"
    if any("\0" in part for part in command):
        return "contains a NUL character"
    if not any(PLACE in part for part in command):
        return f"does not mention {PLACE}, so it would not see the new content"
    return None


def _length_problem(parts: Sequence[str]) -> str | None:
    if any(len(part.encode(errors="replace")) > _LONGEST_PART for part in parts):
        return f"has a part of more than {_LONGEST_PART} bytes"
    if len(parts[-1].encode(errors="replace")) > _LONGEST_NAME:
        return f"has a name of more than {_LONGEST_NAME} bytes"
    return None


def _claims(entry: File | Symlink | Directory) -> Iterator[str]:
    yield f"file:{entry.path}"


def _encloses(directory: Directory) -> str | None:
    return directory.path if directory.exclusive else None


TYPES = (
    AssetType(FILE, File, claims=_claims),
    AssetType(SYMLINK, Symlink, claims=_claims),
    AssetType(DIRECTORY, Directory, claims=_claims, encloses=_encloses),
)
