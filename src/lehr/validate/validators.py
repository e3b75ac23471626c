"""The validators that every candidate must pass, in order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from lehr.base.diagnostics import Diagnostic
from lehr.model.incarnation import Acknowledgement
from lehr.sdk.validator import Scope
from lehr.sdk.validator import Validator as ProposalValidator
from lehr.validate.acknowledgements import acknowledge, acknowledgement_is_spent
from lehr.validate.asked_validators import found_by_plugins
from lehr.validate.claims import claimed_elsewhere, claimed_twice, leads_into_protected
from lehr.validate.databases import database_is_not_asked, unknown_to_database
from lehr.validate.dependencies import (
    depends_in_cycle,
    depends_on_turned_down,
    needed_version_is_never_reached,
    rule_is_not_understood,
    stops_following,
)
from lehr.validate.disappearance import disappeared, let_go_is_present, type_changed
from lehr.validate.externals import external_can_change
from lehr.validate.guards import asset_grows_too_much, emptied, grows_too_much, shrinks_too_much
from lehr.validate.policies import policy_is_broken, policy_is_not_understood, policy_selects_no_type
from lehr.validate.proposal import AssetView, DeltaProposal
from lehr.validate.references import (
    encrypted_file_missing,
    reference_missing,
    reference_of_wrong_type,
    selects_nothing,
    workspace_file_unusable,
    workspace_text_invalid,
)
from lehr.validate.rollouts import emergency_is_ahead, governed_twice
from lehr.validate.secrets import value_looks_secret
from lehr.validate.values import values_blank_or_jump


class OfAsset(NamedTuple):
    """A validator that judges each changed asset separately, and cannot see others."""

    find: Callable[[AssetView], Iterator[Diagnostic]]
    scope: Scope = Scope.ASSET


class OfMany(NamedTuple):
    """A validator that judges assets together."""

    scope: Scope
    find: Callable[[DeltaProposal], Iterator[Diagnostic]]


Validator = OfAsset | OfMany


class Judgement(NamedTuple):
    """The problems of a candidate.

    Attributes:
        acknowledged: acknowledgements that prevented errors.
    """

    diagnostics: list[Diagnostic]
    acknowledged: tuple[Acknowledgement, ...]


VALIDATORS: tuple[Validator, ...] = (
    OfMany(Scope.AGGREGATE, emptied),
    OfMany(Scope.AGGREGATE, disappeared),
    OfAsset(type_changed),
    OfMany(Scope.AGGREGATE, shrinks_too_much),
    OfMany(Scope.AGGREGATE, grows_too_much),
    OfMany(Scope.AGGREGATE, asset_grows_too_much),
    OfMany(Scope.AGGREGATE, values_blank_or_jump),
    OfMany(Scope.AGGREGATE, acknowledgement_is_spent),
    OfMany(Scope.AGGREGATE, database_is_not_asked),
    OfMany(Scope.NEIGHBOURHOOD, selects_nothing),
    OfMany(Scope.NEIGHBOURHOOD, governed_twice),
    OfMany(Scope.NEIGHBOURHOOD, emergency_is_ahead),
    OfMany(Scope.NEIGHBOURHOOD, let_go_is_present),
    OfMany(Scope.NEIGHBOURHOOD, reference_missing),
    OfMany(Scope.NEIGHBOURHOOD, reference_of_wrong_type),
    OfMany(Scope.NEIGHBOURHOOD, depends_in_cycle),
    OfMany(Scope.NEIGHBOURHOOD, depends_on_turned_down),
    OfMany(Scope.NEIGHBOURHOOD, stops_following),
    OfMany(Scope.NEIGHBOURHOOD, needed_version_is_never_reached),
    OfAsset(rule_is_not_understood),
    OfMany(Scope.NEIGHBOURHOOD, claimed_twice),
    OfMany(Scope.NEIGHBOURHOOD, claimed_elsewhere),
    OfMany(Scope.NEIGHBOURHOOD, leads_into_protected),
    OfAsset(external_can_change),
    OfAsset(value_looks_secret),
    OfAsset(encrypted_file_missing),
    OfAsset(workspace_file_unusable),
    OfAsset(workspace_text_invalid),
    OfAsset(unknown_to_database),
    OfAsset(policy_is_not_understood),
    OfAsset(policy_selects_no_type),
    OfMany(Scope.NEIGHBOURHOOD, policy_is_broken),
    OfMany(Scope.NEIGHBOURHOOD, found_by_plugins),
)


def judge(proposal: DeltaProposal, further: Iterable[ProposalValidator] = ()) -> Judgement:
    """Everything that `VALIDATORS` and those of plugins find, with acknowledged errors as warnings."""
    of_plugins = (found for find in further for found in find(proposal))
    return Judgement(*acknowledge(proposal, itertools.chain(run(VALIDATORS, proposal), of_plugins)))


def validate(proposal: DeltaProposal, further: Iterable[ProposalValidator] = ()) -> list[Diagnostic]:
    """The diagnostics of `judge`."""
    return judge(proposal, further).diagnostics


def run(validators: Iterable[Validator], proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """Findings of `validators`: those that judge assets together, in order, then the others in one pass."""
    alone = []
    for validator in validators:
        if isinstance(validator, OfAsset):
            alone.append(validator.find)
        else:
            yield from validator.find(proposal)
    for view in proposal.views():
        for find in alone:
            yield from find(view)
