"""The declarations in the files of a workspace as they are now, committed or not, and their problems."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from lehr import wiring
from lehr.base.diagnostics import Diagnostic, errors, in_order
from lehr.cli.deployment import deployment_of
from lehr.control.state_folder import default_state
from lehr.generate.engine.memo import copied
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.types import Registry
from lehr.publish.claims import compare
from lehr.publish.database_answers import consult
from lehr.publish.predecessor import StoredPredecessor, types_for
from lehr.publish.problem_positions import Locator, with_excerpts
from lehr.query.compare import changes_between
from lehr.query.repeatable import misremembered, unrepeatable
from lehr.sdk.validator import Limits, LookUp
from lehr.validate import DeltaProposal, MappingPredecessor, validate

if TYPE_CHECKING:
    from lehr.sdk.claims import Claims
    from lehr.sdk.generation import Generated
    from lehr.sdk.source import Snapshot
    from lehr.sdk.store import Store


_OTHERWISE = {"PYTHONHASHSEED": "4711", "PYTHONMALLOC": "malloc"}
"""How the second of two builds differs: sets have another order, and objects lie at other addresses."""


class WorkingTree:
    """A workspace on disk, generated and validated.

    Attributes:
        partition: None when `lehr.yaml` cannot be read.
        assets: everything that it declares; meaningless when there are errors.
        newest: header of the incarnation that it was validated against; None for none.
        changes: how it differs from that.
        registry: types, with those that the workspace declares.
        generators: in the order in which they run.
        notes: not problems of the workspace, but worth knowing.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        generated: Generated,
        newest: Incarnation | None,
        changes: tuple[AssetChange, ...],
        diagnostics: tuple[Diagnostic, ...],
        registry: Registry,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.registry = registry
        self.notes = notes
        self.partition: Partition | None = generated.partition
        self.assets: Mapping[AssetId, Asset] = generated.assets
        self.generators = generated.declared
        self.newest = newest
        self.changes = changes
        self.diagnostics = with_excerpts(in_order(diagnostics), snapshot)

    @property
    def valid(self) -> bool:
        """Whether it could be published."""
        return not errors(self.diagnostics)


async def look_at(
    directory: Path,
    store: Store | None,
    registry: Registry,
    *,
    twice: bool = False,
    memo: Path | None = None,
    claims: Sequence[Claims] = (),
) -> WorkingTree:
    """Generate and validate the workspace in `directory`; nothing is written.

    Args:
        store: its newest incarnation is what the workspace is validated against; None for none.
        twice: build it a second time, in another process, and report what comes out differently.
        memo: a third time with a copy of this file, which keeps a control plane's results.
        claims: registers that are asked what other partitions of the host hold. They are closed.

    Raises:
        TransientError, StalledError: the directory cannot be read, or generation broke down.
    """
    with tempfile.TemporaryDirectory(prefix="lehr-") as scratch:
        lender = default_state(directory)
        deployment = deployment_of(str(directory), Path(scratch), kind="directory", lender=lender)
        newest, look_up = wiring.source(deployment).newest(), wiring.look_up(deployment.base)
        kept = None
        if memo is not None and copied(memo, Path(scratch) / wiring.MEMO_FILE):
            kept = Kept(Path(scratch), memo)
        try:
            return await look_at_snapshot(
                newest, store, registry, twice=twice, kept=kept, look_up=look_up, claims=claims
            )
        finally:
            for register in claims:
                await register.close()


class Kept(NamedTuple):
    """A control plane's record of its builds.

    Attributes:
        state: a folder with a copy, which may be changed.
        path: the original, for people.
    """

    state: Path
    path: Path


async def look_at_snapshot(
    snapshot: Snapshot,
    store: Store | None,
    registry: Registry,
    *,
    twice: bool = False,
    kept: Kept | None = None,
    look_up: LookUp | None = None,
    claims: Sequence[Claims] = (),
) -> WorkingTree:
    """As `look_at`, for files that need not be on disk.

    Args:
        kept: build it with this a third time.
        look_up: asks databases that judge the declarations; None where none is asked.
        claims: registers of what other partitions hold.

    Raises:
        TransientError, StalledError: generation broke down.
    """
    generated = await _built(snapshot)
    if twice:
        differing = unrepeatable(generated, await _built(snapshot, _OTHERWISE))
        if kept is not None and not differing:
            differing = misremembered(generated, await _built(snapshot, state=kept.state), str(kept.path))
        generated = replace(generated, diagnostics=(*generated.diagnostics, *differing))
    if generated.partition is None or errors(generated.diagnostics):
        return WorkingTree(snapshot, generated, None, (), generated.diagnostics, registry)
    return await _validated(snapshot, generated, generated.partition, store, registry, look_up, claims)


async def _built(
    snapshot: Snapshot, environment: Mapping[str, str] | None = None, state: Path | None = None
) -> Generated:
    """A new worker's result for the snapshot; it remembers nothing but what is kept in `state`."""
    generation = wiring.generation(environment, state)
    try:
        return await generation.generate(snapshot)
    finally:
        await generation.close()


async def _validated(
    snapshot: Snapshot,
    generated: Generated,
    partition: Partition,
    store: Store | None,
    registry: Registry,
    look_up: LookUp | None,
    claims: Sequence[Claims],
) -> WorkingTree:
    registry = registry.copy()
    registry.declare(types_for(generated, None if store is None else store.intent, partition))
    newest = None if store is None else store.intent.newest(partition)
    if store is None or newest is None:
        predecessor: StoredPredecessor | MappingPredecessor = MappingPredecessor({}, registry)
        changes = tuple(changes_between((), generated.assets))
    else:
        predecessor = StoredPredecessor(store, registry, partition)
        changes = tuple(changes_between(store.intent.assets(partition, newest.sequence), generated.assets))
    limits = generated.limits or Limits()
    answers = await consult(limits, changes, look_up)
    compared = await compare(claims, partition, changes, generated.assets, registry)
    locator = Locator(snapshot)
    proposal = DeltaProposal(
        partition, registry, limits, changes, predecessor, locator, answers, compared.conflicts
    )
    diagnostics = (*generated.diagnostics, *validate(proposal), *compared.warnings)
    return WorkingTree(snapshot, generated, newest, changes, diagnostics, registry, compared.notes)
