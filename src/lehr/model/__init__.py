"""Frozen values and their canonical bytes.

In: nothing. Out: assets, incarnations, diffs, operations, decisions, controls, and the
registry of types.

Architecture invariants: no I/O, no clock, no randomness; every value is immutable and
equal values have equal canonical bytes.
"""
