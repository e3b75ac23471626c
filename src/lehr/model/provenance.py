"""Where an asset comes from: which generator made it, and from what."""

from __future__ import annotations

from typing import Literal

import msgspec

from lehr.base.moments import Moment

Reads = Literal["file", "files", "asset", "assets"]
"""The input of one call of a generator: a file or an asset, or all files or assets that match."""


class Derivation(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """One call of a generator, and the line of it that an asset or an addon was yielded on.

    There may be a million assets: those made by one call and line share one of these.

    Attributes:
        generator: its module's path and its name (`generators/web.py:processes`); or, of a policy, the path
            of the file that declares it, its id, and the name of what it does.
        line: of the module or that file, counted from 1.
        of: the pattern of the files that the generator reads; or the type of the assets, or their selector.
        item: path of the file, or id of the asset, that it was called with; empty for all matches of `of`.
    """

    generator: str
    line: int
    reads: Reads
    of: str
    item: str = ""

    @property
    def module(self) -> str:
        """Path of the file that the generator is in."""
        return self.generator.rpartition(":")[0]

    @property
    def over_files(self) -> bool:
        """True if the generator reads files, False if it reads assets."""
        return self.reads in {"file", "files"}


class DeclaredGenerator(msgspec.Struct, frozen=True, array_like=True):
    """A generator, as its decorator declares it.

    Attributes:
        name: its module's path and its name (`generators/web.py:processes`).
        line: of the module, where it is defined.
        of: the pattern of the files that it reads; or the type of the assets, or their selector.
        makes: for one over assets, the types of the assets that it yields.
    """

    name: str
    line: int
    reads: Reads
    of: str
    makes: tuple[str, ...] = ()


class Annotated(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A part of an asset that its declaration does not contain.

    Attributes:
        addon: that a generator put on it; empty where a policy put a field.
        by: the call of the generator; or the policy and its line, as a generator in the file of the policy
            that is called `POLICY/NAME`.
        path: JSON pointer to the field that the policy put.
    """

    addon: str
    by: Derivation
    path: str = ""

    @property
    def what(self) -> str:
        """The value that was put there, for messages."""
        return self.addon or self.path


class Commit(msgspec.Struct, frozen=True):
    """Who changed a source of truth, when, and why.

    Attributes:
        id: the whole commit id.
        author: name and address as the commit has them.
        time: wall-clock seconds since the epoch at which it was written.
        subject: first line of its message.
    """

    id: str
    author: str
    time: Moment
    subject: str
