"""Compares a candidate with its predecessor and reports all problems of the candidate.

In: a `DeltaProposal`: the changed assets, and a `Predecessor` that looks up the rest. Out: diagnostics, and
the needed acknowledgements; `judge` runs `VALIDATORS` in their order.

Architecture invariants: pure functions, with no I/O except the predecessor's lookups; each declares its
scope, which is never the whole set, so validation costs O(changed); all problems are reported, not just the
first; absence is never treated as an intent to remove (I4).
"""

from lehr.validate.asked_validators import NO_ANSWER
from lehr.validate.databases import NOT_ASKED
from lehr.validate.proposal import DeltaProposal, Locate, MappingPredecessor, Predecessor
from lehr.validate.secrets import known_secret, masked
from lehr.validate.validators import VALIDATORS, Judgement, judge, validate

UNANSWERED = frozenset({NOT_ASKED, NO_ANSWER})
"""Errors that only mean that a database or a plugin could not be asked: the revision may be fine."""

__all__ = [
    "UNANSWERED",
    "VALIDATORS",
    "DeltaProposal",
    "Judgement",
    "Locate",
    "MappingPredecessor",
    "Predecessor",
    "judge",
    "known_secret",
    "masked",
    "validate",
]
