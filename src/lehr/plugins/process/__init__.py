"""`lehr.Process`: long-running programs, each with a number of replicas, on this machine.

In: payloads `Process`. Out: programs that run under supervisords of Lehr's own, one for each
group, below `<state>/supervisor/<group>/`. supervisord restarts crashed programs; Lehr decides the number of
replicas and their content.

    payload.py       what people write            render.py   payload to replicas: pure
    plan.py          diff and order of steps: pure
    observe.py       replicas as they run now     procfs.py   reads /proc
    supervisord.py   one supervisord              rpc.py      its XML-RPC over a Unix socket
    rolling_push.py  carries the steps out        health.py   health probes
    reload.py        what a process has reloaded
    launch.py        becomes the program          plugin.py   the asset plugin

Architecture invariants: running replicas are observed from processes, never remembered; supervisord and its
programs outlive the control plane; nothing here starts a replica while a process of the same replica is still
alive.
"""
