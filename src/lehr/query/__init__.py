"""The read side: what intent says, how production stands, and why.

In: a `Store`, opened for reading. Out: frozen values (`Row`, `Explanation`, `Comparison`, ...) that
say everything a person or a program asks for; whoever shows them only formats.

Architecture invariants: nothing is written; no clock is read (the moment comes in with `Reading`);
nothing here imports what takes long to import, because `lehr why` has to answer at once.
"""
