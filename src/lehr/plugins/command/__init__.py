"""The asset type `lehr.Command`: any script that can check and apply something.

In: payloads (`payload`). Out: processes (`lehr.plugins.processes`, found again by their
`lehr.plugins.mark` after a crash of Lehr) whose exit codes are diffs and outcomes (`plugin`).

Architecture invariants: no part of a command runs in Lehr's own process; no command outlives its time
unnoticed; output is bounded before it is kept.
"""
