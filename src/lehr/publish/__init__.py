"""From a source's newest revision to an incarnation, whole or not at all.

In: a `Source`, a `Generation`, the validators, the store. Out: `Attempt`s, each of which says what
came of one pass: published, unchanged, refused (with all diagnostics), or unreadable.

Architecture invariants: the steps stand in one list, `Publisher.steps`; a refused or unreadable
revision leaves the last good incarnation in force; nothing here touches production or asks for
its state.
"""
