"""From a snapshot of files to assets, incrementally, in a worker process.

In: a `Snapshot` and the registry of types. Out: `Generated`: every asset that the snapshot
declares, in plain asset files or through generators, and every problem found on the way.

Five packages, each of which imports only those below it:

    engine                  the incremental build, and the worker process that runs it
    policies   sandbox      what policies change and make; where the code of authors runs
    typing                  from plain data to typed assets, with every problem in its place
    outcome                 what the others hand to each other: outputs, problems, messages

The parent (`engine.client`) tells the worker (`engine.worker`) which files have changed and answers its
questions for contents; the worker (`engine.build`) keeps what it has made of every file and every
generator's input, makes anew what has changed, and answers with the difference.

Policies (`lehr.Policy`) that change assets do so where these are declared (`policies.mutations`);
those that make assets are generators over assets that run here (`policies.derived_assets`). What nobody has
written of an asset, and a policy may give a default for, is noted as it is made (`typing.unset_fields`).

How far user code is kept apart: a generator runs in a fork (`sandbox.forks`, `sandbox.forker`), so it
cannot damage the worker's memory; limits on time and memory end it; calls for files, network,
processes, clock, randomness and environment raise an error that names the line (`sandbox.denials`); and the
kernel keeps it from files, network and processes as far as it can be had (`sandbox.confinement`). This is
*best effort* in one process of the same user: it stops mistakes and makes outputs repeatable, and
may not stop an author who is set on breaking out. Who may change generators is to be decided where
the source of truth is reviewed.

What the worker has made is kept on disk (`engine.memo`), so that a worker that is started again makes
nothing anew that has not changed.

Architecture invariants:

* Incremental output equals a clean build (I11): nothing but the snapshot's files, the registry
  and Lehr's version goes in, and an output is kept only as long as all that went into it.
* With an error among the diagnostics no asset leaves; the last good answer stays in force.
* The parent never parses what users wrote; only the worker does.
"""
