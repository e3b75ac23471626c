"""From a candidate and its predecessor to everything that is wrong with the candidate.

In: a `DeltaProposal`: the changed assets, and a `Predecessor` that looks up the rest. Out:
diagnostics; `validate` runs `VALIDATORS` in their order.

Architecture invariants: pure functions, no I/O but the predecessor's look-ups; O(changed), never
O(all); every problem is reported, not the first; absence is never taken for a wish (I4).
"""

from lehr.validate.proposal import DeltaProposal, Locate, MappingPredecessor, Predecessor
from lehr.validate.validators import VALIDATORS, validate

__all__ = ["VALIDATORS", "DeltaProposal", "Locate", "MappingPredecessor", "Predecessor", "validate"]
