"""From a candidate and its predecessor to everything that is wrong with the candidate.

In: a `DeltaProposal`: the changed assets, and a `Predecessor` that looks up the rest. Out:
diagnostics, and which acknowledgements were needed; `judge` runs `VALIDATORS` in their order.

Architecture invariants: pure functions, no I/O but the predecessor's look-ups; each declares its
scope, and none is of the whole set, so validation costs O(changed); every problem is reported, not
the first; absence is never taken for a wish (I4).
"""

from lehr.validate.databases import NOT_ASKED
from lehr.validate.proposal import DeltaProposal, Locate, MappingPredecessor, Predecessor
from lehr.validate.secrets import known_secret, masked
from lehr.validate.validators import VALIDATORS, Judgement, judge, validate

__all__ = [
    "NOT_ASKED",
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
