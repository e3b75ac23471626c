"""The read side: intent, the state of production, and the reasons for it.

In: a `Store`, opened for reading. Out: frozen values (`Row`, `Explanation`, `Comparison`, ...) that
contain everything a person or a program asks for; callers that show them only format.

Architecture invariants: nothing is written; no clock is read (the moment comes in with `Reading`);
nothing here imports slow modules, because `lehr why` has to answer immediately.
"""
