"""Ways in which production is out of order, for the conformance suite of plugins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def gone(path: Path) -> Iterator[None]:
    """What is at `path` is somewhere else for a time."""
    aside = path.with_name(path.name + "-aside")
    path.rename(aside)
    yield
    aside.rename(path)


@contextmanager
def directory_at(path: Path) -> Iterator[None]:
    """A directory stands in the place of `path`."""
    with gone(path):
        path.mkdir()
        yield
        path.rmdir()


@contextmanager
def file_at(path: Path, content: bytes = b"in the way") -> Iterator[None]:
    """A file stands in the place of `path`."""
    with gone(path):
        path.write_bytes(content)
        yield
        path.unlink()
