"""The rules of `lehr.sdk.plugin`, for any asset plugin.

In: a plugin with its own small production. Out: `AssertionError` naming the rule that it breaks. A
test makes a fresh `Subject` for each rule and runs it:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_keeps_the_contract(rule, tmp_path):
        asyncio.run(rule(subject(tmp_path)))

`diffs` holds the rules of diffs, also of production that repairs itself, `pushes` those of pushes
that end, `interruption` those of pushes that do not, `discovery` those of what is found before
anything was declared, `conduct` those of what a plugin reports and shows of its own work, `output`
those of what it shows of production's output, `handles` those of production that makes names of its own,
`outputs` those of what other assets read, `texts` those of what plans show.
"""

from lehr.testing.conformance.asset_plugin import (  # noqa: F401 - each adds its rules
    conduct,
    diffs,
    discovery,
    handles,
    interruption,
    output,
    outputs,
    pushes,
    texts,
)
from lehr.testing.conformance.asset_plugin.subject import RULES, Rule, Subject

__all__ = ["RULES", "Rule", "Subject"]
