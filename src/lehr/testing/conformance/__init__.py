"""Conformance suites: the rules of a protocol, as functions that any implementation can be held to.

In: an implementation and a few callables about its world (a suite's `Subject`). Out:
`AssertionError` that begins with the name of the rule that is broken. The suites need no test
framework.

`asset_plugin`, `check_plugin`, `validator`, `source`, `store` and `target_selection` each have `RULES`; as a
decorator, it adds a rule.

Architecture invariants: a suite knows the protocol and no implementation of it; any fault of an
implementation is reported as a broken rule; every rule has an implementation among the tests that
breaks it.
"""
