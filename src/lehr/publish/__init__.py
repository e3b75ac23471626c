"""Turns a source's newest revision into an incarnation, all or nothing.

In: a `Source`, a `Generation`, the validators, the store. Out: `Attempt`s, one for the outcome of each pass:
published, unchanged, refused (with all diagnostics), or unreadable.

Architecture invariants: the steps are in one list, `Publisher.steps`; a refused or unreadable revision leaves
the last good incarnation in force; nothing here touches production or reads its state.
"""
