"""`lehr.LoadBalancer`: an Envoy that Lehr configures through the files that it watches.

In: payloads `LoadBalancer`. Out: files in the folder of an Envoy that runs elsewhere (for example as a
`lehr.Process`), which picks them up without losing a request.

    payload.py        what people write                admin.py           asks Envoy what it runs
    intent.py         payload to plan: pure            folder.py          the files
    envoy.py          plan to files: pure              plan_execution.py  carries out a plan in steps
    running_state.py  Envoy's answers to values: pure  plugin.py          the asset plugin
    compare.py        diff and its effects: pure

Architecture invariants: the truth is what Envoy runs, as its admin interface reports it, and the files that
it would start with; nothing is removed before it has finished its requests; Envoy itself is never started or
stopped here.
"""
