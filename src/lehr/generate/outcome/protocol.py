"""The protocol between parent and worker: length-prefixed msgpack over pipes.

One conversation: the parent sends `Changed`; the worker answers any number of times `Wanted`, each answered
with `Contents`, `Working` and `Unkept`, then any number of `Part`s, and then once `Built`.
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

OVERTAKE = "SIGUSR1"
"""Name of the signal that makes a worker stop calling generators: there is something newer to build."""


class SandboxLimits(msgspec.Struct, frozen=True):
    """Resource limits for generators.

    A fork makes many calls. For all of them together it may use `cpu_seconds`, plus an allowance for each
    call and each megabyte; wall time grows in the same proportion.

    Attributes:
        cpu_seconds: processor time for one call.
        wall_seconds: time within which one call must answer.
        memory_bytes: memory beyond that of the worker itself.
        answer_bytes: total size of what one call yields.
        cpu_seconds_per_call: allowance for each answered call.
        cpu_seconds_per_megabyte: allowance for each megabyte of arguments and answers.
        calls: number of calls that the current fork must answer.
        given_bytes: total size of their arguments.
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
        """Processor seconds that a fork may have used after so many answers of so many bytes."""
        megabytes = (self.given_bytes + answered_bytes) / 1e6
        more = self.cpu_seconds_per_call * answers + self.cpu_seconds_per_megabyte * megabytes
        return self.cpu_seconds + more

    def wall_seconds_in_all(self, answers: int, answered_bytes: int) -> float:
        """Wall seconds that it may have taken until then."""
        return self.wall_seconds / self.cpu_seconds * self.cpu_seconds_in_all(answers, answered_bytes)


class WorkerOptions(msgspec.Struct, frozen=True):
    """Options of a worker process.

    Attributes:
        registry: `module:function` that returns the registry.
        memo: file of outputs that outlive the worker; None for none.
        keeps: whether it adds to them.
    """

    registry: str
    limits: SandboxLimits = SandboxLimits()
    memo: str | None = None
    keeps: bool = True


class Changed(msgspec.Struct, frozen=True):
    """How the snapshot's files differ from those of the last conversation.

    Attributes:
        skipped: paths that exist but are not part of the snapshot.
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
    """Generators are still answering; there is no result yet."""


class Unkept(msgspec.Struct, frozen=True, tag="unkept"):
    """Outputs are no longer kept on disk, with the reason."""

    why: str


class Part(msgspec.Struct, frozen=True, tag="part"):
    """Some of the new and changed assets; `Built` has the rest.

    So that an answer of a million assets is never in memory as one piece, on either side.
    """

    upserts: tuple[Asset, ...]


class Built(msgspec.Struct, frozen=True, tag="built"):
    """The content of the snapshot, as a difference from the last answer without an error.

    Attributes:
        upserts, removals: empty if there is an error among the diagnostics.
        types: names of the types that the workspace declares.
        declared: its generators, in the order in which they run.
        again: paths of files whose `Contents` the worker expects once more after the answer was passed on;
            empty contents if they are unavailable. They are sent before the next `Changed`.
        overtaken: True if the worker stopped on request (`OVERTAKE`): this is not an answer.
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
    """`message`, encoded for the pipe."""
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body
