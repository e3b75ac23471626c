"""Scenarios: people's actions, step by step; each settles before the next begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lehr.control.messages import AnyRequest
from lehr.model.asset import Partition
from lehr.templates import FOLDER
from lehr.testing.sim.simulated_type import SimulatedType


class Edit(msgspec.Struct, frozen=True):
    """The source is edited: `files` are its whole content from now on, by path."""

    what: str
    files: Mapping[str, bytes]


class Order(msgspec.Struct, frozen=True):
    """A person gives commands, one after the other."""

    what: str
    requests: tuple[AnyRequest, ...]


class Drift(msgspec.Struct, frozen=True):
    """A person sets production of the asset `id` to `value`, and the plugin notices."""

    what: str
    id: str
    value: Any


Step = Edit | Order | Drift


class Scenario(msgspec.Struct, frozen=True):
    """A course of events over a new state and empty production.

    Attributes:
        kinds: of production.
        steps: the first is an `Edit`.
        declaring: paths of files that declare production: damage to any of them must be noticed.
    """

    name: str
    partition: Partition
    kinds: tuple[SimulatedType, ...]
    steps: tuple[Step, ...]
    declaring: tuple[str, ...]


def workspace(name: str) -> dict[str, bytes]:
    """The files of a workspace that `lehr init` can make, by path."""
    folder = FOLDER / name
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


class Editor:
    """The files of a source, as a person edits them."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    def write(self, path: str, text: str) -> None:
        """Make the file at `path` hold `text`."""
        self.files[path] = text.encode()

    def replace(self, path: str, old: str, new: str) -> None:
        """Put `new` in the place of `old`, which the file at `path` must hold once."""
        text = self.files[path].decode()
        assert text.count(old) == 1, f"{path} holds {old!r} {text.count(old)} times"
        self.write(path, text.replace(old, new))

    def save(self, what: str) -> Edit:
        """The edits so far, as a step."""
        return Edit(what, dict(self.files))
