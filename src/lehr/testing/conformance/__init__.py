"""Conformance suites: the rules of a protocol, as functions that any implementation can be held to.

In: an implementation and a few callables about its world. Out: `AssertionError` naming the
rule that it breaks. The suites need no test framework.
"""
