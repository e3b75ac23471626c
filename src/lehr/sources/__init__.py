"""Sources of truth: git repositories, plain directories, rows of databases, other partitions' incarnations.

In: a location where people edit. Out: immutable snapshots (`lehr.sdk.source.Snapshot`) and
hints that there may be a new one. Of several sources, `CompositeSource` makes one.

* A snapshot holds regular files alone. Symbolic links and submodules are never followed,
  in neither kind of source: they could lead anywhere. They are listed in `skipped`.
* What an incarnation was made from is kept in a bare git repository in the state directory
  (`Mirror`), for a directory too, so that neither a force-push nor an edit makes the past
  unreadable. `at` reads it again.
* Content ids are git's blob ids in both kinds.

Architecture invariants: reading writes nothing to a source, and `lehr.editing` is all that writes to one; no
work tree is checked out; the git command is run in one module (`command`); a source that cannot be read
raises, and never returns a part, nor does a composite of which one cannot be read.
"""

from __future__ import annotations

from lehr.sources.command import interrupt
from lehr.sources.composite import CompositeSource
from lehr.sources.declared import Means, open_declared
from lehr.sources.directory import DirectorySource
from lehr.sources.git import GitSource
from lehr.sources.location import open_source, require_location
from lehr.sources.mirror_upkeep import forget, pack
from lehr.sources.signatures import SignersFile
from lehr.sources.tree import TreeSnapshot

__all__ = [
    "CompositeSource",
    "DirectorySource",
    "GitSource",
    "Means",
    "SignersFile",
    "TreeSnapshot",
    "forget",
    "interrupt",
    "open_declared",
    "open_source",
    "pack",
    "require_location",
]
