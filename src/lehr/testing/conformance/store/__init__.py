"""The rules of `lehr.sdk.store.Store`, for any store.

In: a function that opens an empty store, and the same store again. Out: `AssertionError` naming
the rule that it breaks. A test makes a fresh `Subject` for each rule and runs it:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_keeps_the_contract(rule, tmp_path):
        rule(Subject(lambda: MyStore(tmp_path / "state")))

`incarnations` holds the rules of intent, `admission` those of pushes, `history` those of what was decided and
reported, `feed` those of the feed, `leases` those of who may write, `releases` those of what assets may have,
`rollouts` those of evidence, `retention` those of pruning, `imports` those of incarnations of other states,
`transactions` those of concurrency and failures.
"""

from lehr.testing.conformance.store import (  # noqa: F401 - each adds its rules
    admission,
    feed,
    history,
    imports,
    incarnations,
    leases,
    releases,
    retention,
    rollouts,
    transactions,
)
from lehr.testing.conformance.store.subject import RULES, Rule, Subject

__all__ = ["RULES", "Rule", "Subject"]
