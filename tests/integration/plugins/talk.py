"""Makes real production print what a rule of the conformance suite wants to be printed."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path


def into(folder: Path) -> Callable[[Sequence[bytes]], AbstractContextManager[None]]:
    """A `Subject.talk` for programs that print the files of `folder`, while it is there, in their order."""

    @contextlib.contextmanager
    def talk(parts: Sequence[bytes]) -> Iterator[None]:
        new = folder.with_name(f"{folder.name}.new")
        new.mkdir()
        for number, part in enumerate(parts):
            (new / f"{number:03}").write_bytes(part)
        new.rename(folder)
        yield
        shutil.rmtree(folder)

    return talk
