"""The declarations in the current files of a workspace, committed or not, and their problems."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from lehr import wiring
from lehr.base.blocking import Inline
from lehr.base.diagnostics import Diagnostic, errors, in_order
from lehr.base.errors import LehrError
from lehr.cli.deployment import deployment_of
from lehr.control.state_folder import default_state
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.types import Registry
from lehr.publish.claims import compare
from lehr.publish.database_answers import consult
from lehr.publish.plugin_answers import ask
from lehr.publish.predecessor import StoredPredecessor, types_for
from lehr.publish.problem_positions import Locator, with_excerpts
from lehr.query.compare import changes_between
from lehr.query.repeatable import misremembered, unrepeatable
from lehr.sdk.validator import Limits, LookUp, Validator
from lehr.validate import DeltaProposal, MappingPredecessor, validate

if TYPE_CHECKING:
    from lehr.model.provenance import DeclaredGenerator
    from lehr.sdk.asked_validator import Answered, AskedValidator
    from lehr.sdk.claims import Claims
    from lehr.sdk.generation import Generated, Generation
    from lehr.sdk.source import Snapshot
    from lehr.sdk.store import Store


_OTHERWISE = {"PYTHONHASHSEED": "4711", "PYTHONMALLOC": "malloc"}
"""Environment of the second of two builds: sets have another order, objects have other addresses."""


class WorkingTree(NamedTuple):
    """A workspace on disk, generated and validated.

    Attributes:
        partition: None when `lehr.yaml` cannot be read.
        assets: everything that it declares; meaningless if there are errors.
        generators: in the order in which they run.
        registry: types, with those that the workspace declares.
        newest: header of the incarnation that it was validated against; None for none.
        changes: how it differs from that.
        notes: useful information that is not a problem of the workspace.
        judged_by: validators of plugins in other processes that have judged it.
    """

    partition: Partition | None
    assets: Mapping[AssetId, Asset]
    generators: tuple[DeclaredGenerator, ...]
    registry: Registry
    diagnostics: Sequence[Diagnostic]
    newest: Incarnation | None = None
    changes: tuple[AssetChange, ...] = ()
    notes: tuple[str, ...] = ()
    judged_by: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether it could be published."""
        return not errors(self.diagnostics)


async def look_at(
    directory: Path,
    store: Store | None,
    *,
    twice: bool = False,
    memo: Path | None = None,
    generation: Generation | None = None,
    claims: Sequence[Claims] = (),
    asked_validators: Callable[[], Sequence[AskedValidator]] = tuple,
) -> WorkingTree:
    """Generate and validate the workspace in `directory`; nothing is written.

    Args:
        store: its newest incarnation is what the workspace is validated against; None for none.
        twice: build it a second time in another process, and report differences.
        memo: build it a third time with a copy of this file, the cached results of a control plane.
        generation: builds it; None for a new worker that builds from scratch.
        claims: registers of the claims of other partitions on this host. They are closed.
        asked_validators: returns those of plugins in other processes, once the workspace is generated.

    Raises:
        TransientError, StalledError: the directory cannot be read, or generation failed.
    """
    with tempfile.TemporaryDirectory(prefix="lehr-") as scratch:
        lender = default_state(directory)
        deployment = replace(deployment_of(str(directory), Path(scratch), "directory"), lender=lender)
        newest, look_up = wiring.source(deployment).newest(), wiring.look_up(deployment.base)
        validators = (*wiring.validators(lender), *wiring.provider_validators(deployment.plugins))
        kept = None
        if memo is not None:
            from lehr.generate.engine.memo import copied

            kept = Kept(Path(scratch), memo) if copied(memo, Path(scratch) / wiring.MEMO_FILE) else None
        try:
            return await look_at_snapshot(
                newest,
                store,
                twice=twice,
                kept=kept,
                generation=generation,
                look_up=look_up,
                claims=claims,
                validators=validators,
                asked_validators=asked_validators,
            )
        finally:
            for register in claims:
                await register.close()


class Kept(NamedTuple):
    """A control plane's record of its builds.

    Attributes:
        state: a folder with a copy, which may be changed.
        path: the original, for messages.
    """

    state: Path
    path: Path


async def look_at_snapshot(
    snapshot: Snapshot,
    store: Store | None,
    *,
    twice: bool = False,
    kept: Kept | None = None,
    generation: Generation | None = None,
    look_up: LookUp | None = None,
    claims: Sequence[Claims] = (),
    validators: Sequence[Validator] = (),
    asked_validators: Callable[[], Sequence[AskedValidator]] = tuple,
) -> WorkingTree:
    """As `look_at`, for files that need not be on disk.

    Args:
        kept: build it a third time with these results.
        generation: as for `look_at`.
        look_up: queries the databases that policies use; None for none.
        claims: registers of the claims of other partitions.
        validators: those of plugins.
        asked_validators: returns those of plugins in other processes, once the workspace is generated.

    Raises:
        TransientError, StalledError: generation failed.
    """
    types = wiring.known_types()
    generated = await (_built(snapshot) if generation is None else generation.generate(snapshot))
    if twice:
        differing = unrepeatable(generated, await _built(snapshot, _OTHERWISE))
        if kept is not None and not differing:
            differing = misremembered(generated, await _built(snapshot, state=kept.state), str(kept.path))
        generated = replace(generated, diagnostics=(*generated.diagnostics, *differing))
    tree = WorkingTree(
        generated.partition, generated.assets, generated.declared, types, generated.diagnostics
    )
    if tree.partition is not None and tree.valid:
        tree = await _validated(
            tree, tree.partition, snapshot, generated, store, look_up, claims, validators, asked_validators()
        )
    return tree._replace(diagnostics=with_excerpts(in_order(tree.diagnostics), snapshot))


async def _built(
    snapshot: Snapshot, environment: Mapping[str, str] | None = None, state: Path | None = None
) -> Generated:
    """The result of a new worker for the snapshot; it only knows what is cached in `state`."""
    generation = wiring.generation(environment, state, keeps=False)
    try:
        return await generation.generate(snapshot)
    finally:
        await generation.close()


async def _validated(
    tree: WorkingTree,
    partition: Partition,
    snapshot: Snapshot,
    generated: Generated,
    store: Store | None,
    look_up: LookUp | None,
    claims: Sequence[Claims],
    validators: Sequence[Validator],
    asked_validators: Sequence[AskedValidator],
) -> WorkingTree:
    registry = tree.registry.copy()
    registry.declare(types_for(generated, None if store is None else store.intent, partition))
    newest = None if store is None else store.intent.newest(partition)
    if store is None or newest is None:
        predecessor: StoredPredecessor | MappingPredecessor = MappingPredecessor({}, registry)
        changes = tuple(changes_between((), generated.assets))
    else:
        predecessor = StoredPredecessor(store, registry, partition)
        changes = tuple(predecessor.changes(generated.assets))
    limits = generated.limits or Limits()
    answers = await consult(limits, changes, look_up)
    compared = await compare(claims, partition, changes, generated.assets, registry)

    def proposal(answered: Sequence[Answered] = ()) -> DeltaProposal:
        locator, conflicts = Locator(snapshot), compared.conflicts
        return DeltaProposal(
            partition, registry, limits, changes, predecessor, locator, answers, conflicts, answered
        )

    answered = await ask(asked_validators, changes, proposal, Inline())
    diagnostics = (*generated.diagnostics, *validate(proposal(answered), validators), *compared.warnings)
    return tree._replace(
        registry=registry,
        diagnostics=diagnostics,
        newest=newest,
        changes=changes,
        notes=compared.notes,
        judged_by=tuple(item.validator for item in answered if not isinstance(item.answer, LehrError)),
    )
