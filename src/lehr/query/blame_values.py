"""The answers of `lehr.query.blame`."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.base.diagnostics import Position
from lehr.model.asset import AssetId
from lehr.model.incarnation import SourceRevision
from lehr.model.provenance import Commit, Derivation


class Source(msgspec.Struct, frozen=True):
    """A file or a line of it.

    Attributes:
        incarnation: sequence of the one whose revision has it so.
        text: of the line; empty for a file as a whole.
        content: id of the file's content; empty if the file can no longer be read.
        commit: the last that changed it; None where that is not known.
    """

    at: Position
    incarnation: int
    text: str = ""
    content: str = ""
    commit: Commit | None = None


class Maker(msgspec.Struct, frozen=True):
    """A generator that had a part in an asset, and the arguments it was called with.

    Attributes:
        by: the call.
        code: the line that yielded.
        addon: the one that it put on the asset; empty if it made the asset.
        path: JSON pointer to the field that it, a policy, put; empty for any other.
        files, assets: its inputs; the first of them.
        inputs: number of files and assets that it read.
    """

    by: Derivation
    code: Source
    addon: str = ""
    files: tuple[Source, ...] = ()
    assets: tuple[AssetId, ...] = ()
    inputs: int = 0
    path: str = ""


class Link(msgspec.Struct, frozen=True):
    """An asset in the chain of those that one was made from.

    Attributes:
        since: sequence of the incarnation in which it last changed.
        declared: where an asset file declares it; None if a generator made it.
        makers: what made it, and what annotated it.
        recorded: False if a generator made it, and an older Lehr did not record which; then `declared` is
            the file that it was called with, or where it yielded.
    """

    id: AssetId
    type: str
    since: int
    declared: Source | None
    makers: tuple[Maker, ...]
    recorded: bool = True


class InputMatch(msgspec.Struct, frozen=True):
    """A place in the input that holds the searched value. It need not be the origin of the value.

    Attributes:
        same_name: True where it has the same name.
    """

    source: Source
    same_name: bool


class FieldBlame(msgspec.Struct, frozen=True):
    """Where the value of one field comes from.

    Attributes:
        since: sequence of the incarnation from which on it has had this value.
        written: the line of the asset file that sets it: a fact.
        makers: indexes of those makers of the asset that set it: a fact.
        found: places that hold the value: its maker may have taken it from them.
        searched_all: False if there was more to search, or more was found.
    """

    pointer: str
    value: Any
    since: int
    written: Source | None = None
    makers: tuple[int, ...] = ()
    found: tuple[InputMatch, ...] = ()
    searched_all: bool = True


class Blame(msgspec.Struct, frozen=True):
    """Where an asset comes from.

    Attributes:
        incarnation: name of the one that is asked about.
        sources: its revisions.
        readable: False when these are no longer kept: then neither files nor commits are known.
        since_pruned: True if it may have been so longer: older incarnations are pruned.
        chain: the asset, then the assets it was made from, breadth first.
        whole: False if the chain continues.
        field: the answer about one field.
    """

    incarnation: str
    sources: tuple[SourceRevision, ...]
    readable: bool
    since_pruned: bool
    chain: tuple[Link, ...]
    whole: bool
    field: FieldBlame | None = None
