"""The rules of `lehr.sdk.plugin`, for any asset plugin.

In: a plugin with its own small production. Out: `AssertionError` naming the rule that it breaks. A
test makes a fresh `Subject` for each rule and runs it:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_keeps_the_contract(rule, tmp_path):
        asyncio.run(rule(subject(tmp_path)))

`looking` holds the rules of diffs, `pushing` those of pushes that end, `interruption` those of
pushes that do not, `recovering` those of production that repairs itself, `discovering` those of
what is found before anything was declared, `conduct` those of what a plugin reports of itself and
shows, `output` those of what it shows of production's output.
"""

from lehr.testing.conformance.asset_plugin.conduct import RULES as _CONDUCT
from lehr.testing.conformance.asset_plugin.discovering import RULES as _DISCOVERING
from lehr.testing.conformance.asset_plugin.interruption import RULES as _INTERRUPTION
from lehr.testing.conformance.asset_plugin.looking import RULES as _LOOKING
from lehr.testing.conformance.asset_plugin.output import RULES as _OUTPUT
from lehr.testing.conformance.asset_plugin.pushing import RULES as _PUSHING
from lehr.testing.conformance.asset_plugin.recovering import RULES as _RECOVERING
from lehr.testing.conformance.asset_plugin.subject import Rule, Subject

__all__ = ["RULES", "Rule", "Subject"]

RULES: tuple[Rule, ...] = (
    *_LOOKING,
    *_PUSHING,
    *_INTERRUPTION,
    *_RECOVERING,
    *_DISCOVERING,
    *_CONDUCT,
    *_OUTPUT,
)
