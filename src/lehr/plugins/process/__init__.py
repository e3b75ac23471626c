"""`lehr.Process`: long-running programs, each with a number of replicas, on this machine.

In: payloads `Process`. Out: programs that run under supervisords of Lehr's own, one for each
group, below `<state>/supervisor/<group>/`. Crash restarts are supervisord's work; how many
replicas there are, and with what content, is Lehr's.

    payload.py       what people write            render.py   payload to replicas: pure
    plan.py          diff and order of steps: pure
    observe.py       replicas as they run now     procfs.py   what /proc says
    supervisord.py   one supervisord              rpc.py      its XML-RPC over a Unix socket
    rolling_push.py  carries the steps out        health.py   health probes
    launch.py        becomes the program          plugin.py   the asset plugin

Architecture invariants: what runs is observed from processes, never remembered; supervisord
and its programs outlive the control plane; nothing here starts a replica while a process of
the same replica is still alive.
"""
