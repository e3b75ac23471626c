"""The one place that chooses concrete sources, stores, plugins and checks.

Third parties add theirs with entry points, which `pip install` makes known:

| group | names a function | that returns |
|---|---|---|
| `lehr.types` | `() ->` | an iterable of `lehr.model.types.AssetType` |
| `lehr.plugins` | `(lehr.wiring.Deployment) ->` | a `lehr.sdk.plugin.AssetPlugin` |
| `lehr.checks` | `() ->` | a `lehr.sdk.check.CheckPlugin` |

Imports stand inside the functions, because commands that only read must not pay for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from lehr.control.plane import Parts
    from lehr.model.types import Registry
    from lehr.sdk.check import CheckPlugin
    from lehr.sdk.generation import Generation
    from lehr.sdk.plugin import AssetPlugin
    from lehr.sdk.source import Source

STATE_FILE = "state.sqlite"
STATE_FOLDER = ".lehr"


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """What is not intent: where things are on this machine.

    Attributes:
        location: the source, as `lehr.sources.open_source` reads it.
        state: folder for all that Lehr itself keeps.
        base: folder that relative paths in intent are relative to.
        kind, branch, path: of the source, where `location` leaves it open.
        poll: longest seconds between two looks at the source; None for the kind's default.
    """

    location: str
    state: Path
    base: Path
    kind: Literal["git", "directory"] | None = None
    branch: str | None = None
    path: str = ""
    poll: float | None = None


def registry() -> Registry:
    """All types that this installation knows."""
    from lehr.checks import TYPES as CHECK_TYPES
    from lehr.model.addons import ADDONS
    from lehr.model.governance import GOVERNANCE_TYPES
    from lehr.model.types import Registry
    from lehr.plugins.command.payload import TYPES as COMMAND_TYPES
    from lehr.plugins.file.payload import TYPES as FILE_TYPES
    from lehr.plugins.process.payload import TYPES as PROCESS_TYPES

    known = Registry((*FILE_TYPES, *PROCESS_TYPES, *COMMAND_TYPES, *CHECK_TYPES, *GOVERNANCE_TYPES), ADDONS)
    for types in _installed("lehr.types"):
        for item in types():
            known.add(item)
    return known


def plugins(deployment: Deployment) -> list[AssetPlugin]:
    """A plugin for every type that has production. Each has threads of its own (invariant I9)."""
    from lehr.base.blocking import Threads
    from lehr.base.clock import SystemClock
    from lehr.plugins.command.plugin import CommandPlugin
    from lehr.plugins.file.plugin import FilePlugin
    from lehr.plugins.process.plugin import ProcessPlugin

    base, state, clock = deployment.base, deployment.state, SystemClock()
    return [
        FilePlugin(base, Threads("file", 8)),
        CommandPlugin(base, state / "commands", Threads("command", CommandPlugin.traits.turns), clock),
        ProcessPlugin(state, Threads("process", ProcessPlugin.traits.turns), clock, base=base),
        *(make(deployment) for make in _installed("lehr.plugins")),
    ]


def checks() -> list[CheckPlugin]:
    """Every check, in the order in which verdicts are shown."""
    from lehr.checks import CHECKS

    return [*(check() for check in CHECKS), *(make() for make in _installed("lehr.checks"))]


def source(deployment: Deployment) -> Source:
    """The source of truth."""
    from lehr.base.blocking import Threads
    from lehr.base.clock import SystemClock
    from lehr.sources import open_source

    return open_source(
        deployment.location,
        deployment.state,
        clock=SystemClock(),
        kind=deployment.kind,
        branch=deployment.branch,
        path=deployment.path,
        poll_seconds=deployment.poll,
        blocking=Threads("source", 1),
    )


def generation() -> Generation:
    """A generation worker that knows the types of `registry`."""
    from lehr.base.blocking import Threads
    from lehr.generate.client import GenerationWorker

    return GenerationWorker("lehr.wiring:registry", Threads("generate", 1))


def parts(deployment: Deployment) -> Parts:
    """All that a control plane is made of. The caller holds the state folder's lock.

    Raises:
        TransientError, StalledError: the state file cannot be opened.
    """
    from lehr.base.blocking import Threads
    from lehr.base.chance import Chance
    from lehr.base.clock import SystemClock
    from lehr.control.plane import Parts
    from lehr.store import SqliteStore

    return Parts(
        state=deployment.state,
        store=SqliteStore(deployment.state / STATE_FILE),
        source=source(deployment),
        generation=generation(),
        clean_generation=generation,
        registry=registry(),
        plugins=plugins(deployment),
        checks=checks(),
        clock=SystemClock(),
        chance=Chance(),
        blocking=Threads("store", 1),
    )


def _installed(group: str) -> Iterator[Any]:
    """What other packages have registered under `group`, by name."""
    import importlib.metadata

    for entry in sorted(importlib.metadata.entry_points(group=group), key=lambda item: item.name):
        yield entry.load()
