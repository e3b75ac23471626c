"""The read side: intent, the state of production, and its reasons.

In: a `Store`, opened for reading. Out: frozen values (`Row`, `Explanation`, `Comparison`, ...) that
contain everything that people and programs ask for; callers only format them.

Architecture invariants: nothing is written; no clock is read (the time comes with `Reading`); nothing here
imports slow modules, because `lehr why` must answer immediately.
"""
