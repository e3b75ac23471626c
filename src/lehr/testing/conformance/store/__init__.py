"""The rules of `lehr.sdk.store.Store`, for any store.

In: a function that opens an empty store, and the same store again. Out: `AssertionError` naming
the rule that it breaks. A test makes a fresh `Subject` for each rule and runs it:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_keeps_the_contract(rule, tmp_path):
        rule(Subject(lambda: MyStore(tmp_path / "state")))

`incarnations` and `spans` hold the rules of intent, `admission` those of pushes, `history` those of
what was decided and reported, `retention` those of pruning, `importing` those of incarnations of
other states, `handling` those of concurrency and failures.
"""

from lehr.testing.conformance.store.admission import RULES as _ADMISSION
from lehr.testing.conformance.store.handling import RULES as _HANDLING
from lehr.testing.conformance.store.history import RULES as _HISTORY
from lehr.testing.conformance.store.importing import RULES as _IMPORTING
from lehr.testing.conformance.store.incarnations import RULES as _INCARNATIONS
from lehr.testing.conformance.store.retention import RULES as _RETENTION
from lehr.testing.conformance.store.spans import RULES as _SPANS
from lehr.testing.conformance.store.subject import Rule, Subject

__all__ = ["RULES", "Rule", "Subject"]

RULES: tuple[Rule, ...] = (
    *_INCARNATIONS,
    *_SPANS,
    *_ADMISSION,
    *_HISTORY,
    *_RETENTION,
    *_IMPORTING,
    *_HANDLING,
)
