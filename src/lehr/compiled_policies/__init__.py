"""Policies (`lehr.Policy`), compiled for generation, which applies them to assets, and for validation.

In: a policy, as intent. Out: functions of an asset's values, and the problems in the policy.

`policy` selects the assets that a policy applies to and compiles values that contain expressions; `rules`
holds the rules that validation checks assets against.

Architecture invariant: pure; the same values always give the same answer.
"""
