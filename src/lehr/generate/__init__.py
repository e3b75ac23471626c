"""Turns a snapshot of files into assets, incrementally, in a worker process.

In: a `Snapshot` and the registry of types. Out: `Generated`: every asset that the snapshot declares, in asset
files or through generators, and every problem found.

Five packages, each importing only those below it:

    engine                  the incremental build, and the worker process that runs it
    policies   sandbox      what policies change and make; where the code of authors runs
    typing                  from plain data to typed assets, with every problem in its place
    outcome                 what the others hand to each other: outputs, problems, messages

The parent (`engine.client`) sends the worker (`engine.worker`) the list of changed files, and file contents
on request; the worker (`engine.build`) keeps the output of every file and every generator's input, rebuilds
what has changed, and answers with the difference.

Policies (`lehr.Policy`) that change assets do so where these are declared (`policies.mutations`); those that
make assets are generators over assets that run here (`policies.derived_assets`). Unset fields of an asset,
for which a policy may give a default, are recorded when the asset is made (`typing.unset_fields`).

Isolation of user code: a generator runs in a fork (`sandbox.forks`, `sandbox.forker`), so it cannot damage
the worker's memory; limits on time and memory end it; calls for files, network, processes, clock, randomness
and environment raise an error that names the line (`sandbox.denials`); and the kernel, where it can, denies
files, network and processes (`sandbox.confinement`). This is *best effort* in one process of the same user:
it stops mistakes and makes outputs repeatable, but may not stop an author determined to break out. Decide who
may change generators where the source of truth is reviewed.

The worker's outputs are kept on disk (`engine.memo`), so that a restarted worker rebuilds only what has
changed.

Architecture invariants:

* Incremental output equals a clean build (I11): the only inputs are the snapshot's files, the registry and
  Lehr's version, and an output is kept only while all its inputs stay the same.
* If the diagnostics include an error, no asset is returned; the last good answer stays in force.
* The parent never parses what users wrote; only the worker does.
"""
