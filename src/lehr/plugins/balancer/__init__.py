"""`lehr.LoadBalancer`: an Envoy that Lehr configures through the files that it watches.

In: payloads `LoadBalancer`. Out: files in the folder of an Envoy that somebody else keeps running
(a `lehr.Process`, say), taken up by that Envoy without a request lost.

    payload.py        what people write                admin.py           asks Envoy what it runs
    intent.py         payload to plan: pure            folder.py          the files
    envoy.py          plan to files: pure              plan_execution.py  brings a plan about, in steps
    running_state.py  Envoy's answers to values: pure  plugin.py          the asset plugin
    compare.py        diff and its effects: pure

Architecture invariants: the truth is what Envoy runs, as its admin interface tells, and the files
that it would start with; nothing is taken away from requests before it has finished those that it
has; Envoy itself is never started or stopped here.
"""
