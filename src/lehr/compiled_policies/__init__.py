"""Policies (`lehr.Policy`), compiled: for generation, which changes assets by them, and for validation.

In: a policy, as intent. Out: functions of an asset's values, and whatever in the policy cannot be understood.

`policy` says which assets a policy is about, and compiles values with expressions in them; `rules` are the
rules that validation holds assets against.

Architecture invariant: pure, and of the same values always the same answer.
"""
