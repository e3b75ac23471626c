"""The running program and its command channel.

In: commands over a Unix socket, whose peer credentials identify the sender. Out: controls in the
store, an audit entry for each, and woken loops. `prerequisites` reports what a machine lacks.

Architecture invariants: every change goes through here; reading does not need it.
A command is carried out completely or refused with a reason; both are audited.
"""
