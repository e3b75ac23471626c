"""Sources of truth: git repositories, plain directories, database rows, other partitions' incarnations.

In: a location that people edit. Out: immutable snapshots (`lehr.sdk.source.Snapshot`) and hints that there
may be a new one. `CompositeSource` combines several sources into one.

* A snapshot holds regular files only. Symbolic links and submodules are never followed, in any kind of
  source: they could lead anywhere. They are listed in `skipped`.
* The inputs of each incarnation are kept in a bare git repository in the state directory (`Mirror`), even
  those of a plain directory, so that neither a force-push nor an edit makes the past unreadable. `at` reads
  them again.
* Content ids are git blob ids in all kinds.

Architecture invariants: reading writes nothing to a source, and only `lehr.editing` writes to one; no work
tree is checked out; the git command is run in one module (`command`); a source that cannot be read raises and
never returns a part, and so does a composite with such a source.
"""

from __future__ import annotations

from lehr.sources.command import interrupt
from lehr.sources.composite import CompositeSource
from lehr.sources.declared import SourceContext, open_declared
from lehr.sources.directory import DirectorySource
from lehr.sources.git import GitSource
from lehr.sources.location import open_source, require_location
from lehr.sources.mirror import forget, pack
from lehr.sources.signatures import SignersFile
from lehr.sources.tree import TreeSnapshot

__all__ = [
    "CompositeSource",
    "DirectorySource",
    "GitSource",
    "SignersFile",
    "SourceContext",
    "TreeSnapshot",
    "forget",
    "interrupt",
    "open_declared",
    "open_source",
    "pack",
    "require_location",
]
