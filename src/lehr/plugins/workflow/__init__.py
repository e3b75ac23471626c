"""`lehr.Workflow`: an aspect of production that a workflow of another engine moves.

In: payloads `Workflow`. Out: production observed, and a run of a workflow where it is not as intended.

    payload.py    what people write                  following.py        follows a run to its end
    addresses.py  where workflows run: pure          observing.py        asks production
    compare.py    diff and its effects: pure         reporter.py         reports each step of a run once
    outcomes.py   what the end of a run means: pure  notes.py            which engine has the run of a push
    engines.py    what an engine must do             connections.py      connects engines, when needed
                                                     temporal_engine.py  Temporal
                                                     dbos_engine.py      DBOS
                                                     plugin.py           the asset plugin

Architecture invariants: production is what the observation shows, never the state of a run; an engine never
has two runs of one asset at once; a run is named after its asset and its push, so that it is found without
any memory; a push whose outcome is unknown is looked up in the engine that it was started in, before anything
else is started; nothing that an engine returns is executed, and its messages are short and without known
secrets.
"""
