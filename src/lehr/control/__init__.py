"""The running program, and the channel over which people command it.

In: commands over a Unix socket, whose peer credentials say who gives them. Out: controls in the
store, an entry in the audit trail for each, and woken loops.

Architecture invariants: whatever changes something goes through here; reading does not need it.
A command is carried out whole or refused with a reason; both are audited.
"""
