"""What the parent and the worker say to each other: length-prefixed msgpack over pipes.

One conversation: the parent says what has `Changed`; the worker answers any number of times
`Wanted`, each answered with `Contents`, `Working` and `Unkept`, then any number of `Part`s, and then once
`Built`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.provenance import DeclaredGenerator
from lehr.sdk.source import FileEntry
from lehr.sdk.validator import Limits

LENGTH_BYTES = 4


class SandboxLimits(msgspec.Struct, frozen=True):
    """What generators may use.

    A fork makes many calls. For all of them together it may use `cpu_seconds`, and more for each call and
    each megabyte; and of time in the same proportion as for one call.

    Attributes:
        cpu_seconds: of processor time, for one call.
        wall_seconds: until one call must have answered.
        memory_bytes: beyond what the worker itself occupies.
        answer_bytes: of all that one call yields.
        cpu_seconds_per_call: what a fork may use more for each call that it has answered.
        cpu_seconds_per_megabyte: what it may use more for each megabyte that it is given or answers.
        calls: that the fork at hand is to answer.
        given_bytes: what these calls are given.
    """

    cpu_seconds: int = 10
    wall_seconds: float = 30.0
    memory_bytes: int = 512 * 1024 * 1024
    answer_bytes: int = 64 * 1024 * 1024
    cpu_seconds_per_call: float = 0.1
    cpu_seconds_per_megabyte: float = 2.0
    calls: int = 1
    given_bytes: int = 0

    def cpu_seconds_in_all(self, answers: int, answered_bytes: int) -> float:
        """What a fork may have used when it has answered so often, and so much."""
        megabytes = (self.given_bytes + answered_bytes) / 1e6
        more = self.cpu_seconds_per_call * answers + self.cpu_seconds_per_megabyte * megabytes
        return self.cpu_seconds + more

    def wall_seconds_in_all(self, answers: int, answered_bytes: int) -> float:
        """How long it may have taken until then."""
        return self.wall_seconds / self.cpu_seconds * self.cpu_seconds_in_all(answers, answered_bytes)


class Changed(msgspec.Struct, frozen=True):
    """How the snapshot's files differ from those of the last conversation.

    Attributes:
        skipped: paths of all that is there and no part of the snapshot.
    """

    files: tuple[FileEntry, ...]
    gone: tuple[str, ...]
    skipped: tuple[str, ...] = ()


class Contents(msgspec.Struct, frozen=True):
    """Contents of the files that were `Wanted`, in the same order."""

    contents: tuple[bytes, ...]


class Wanted(msgspec.Struct, frozen=True, tag="wanted"):
    """The worker needs the contents of these files."""

    paths: tuple[str, ...]


class Working(msgspec.Struct, frozen=True, tag="working"):
    """Generators go on answering, and nothing is to be said about it yet."""


class Unkept(msgspec.Struct, frozen=True, tag="unkept"):
    """Nothing is kept on disk from now on, and why."""

    why: str


class Part(msgspec.Struct, frozen=True, tag="part"):
    """Some of the assets that are new or differ; `Built` has the rest.

    So that an answer of a million assets is never in memory as one piece, on neither side.
    """

    upserts: tuple[Asset, ...]


class Built(msgspec.Struct, frozen=True, tag="built"):
    """What the snapshot declares, as a difference from the last answer without an error.

    Attributes:
        upserts, removals: empty if there is an error among the diagnostics.
        types: names of the types that the workspace declares.
        declared: its generators, in the order in which they run.
        again: paths of files whose `Contents` the worker takes once more, when the answer has been passed
            on; none, if they cannot be had. They are sent before the next `Changed`.
        overtaken: True when the worker was told (`OVERTAKE`) to stop, and did: this is no answer.
    """

    partition: Partition | None
    limits: Limits | None
    generators: Digest
    upserts: tuple[Asset, ...]
    removals: tuple[AssetId, ...]
    diagnostics: tuple[Diagnostic, ...]
    types: tuple[str, ...] = ()
    declared: tuple[DeclaredGenerator, ...] = ()
    again: tuple[str, ...] = ()
    overtaken: bool = False


Answer = Wanted | Working | Unkept | Part | Built

_encoder = msgspec.msgpack.Encoder()


def frame(message: Any) -> bytes:
    """`message` as it goes over the pipe."""
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body
