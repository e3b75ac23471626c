"""The incremental build: decides which outputs to keep or rebuild, and runs the worker process that does it.

`client` is the parent's side, `worker` the process, `build` one pass over a snapshot. `generators` runs the
generators that must run, in the order of `schedule`, through `runs` (calls in the sandbox) and `records`
(their results). `assembly` combines all outputs, `memo` keeps them on disk, `verification` rebuilds samples
of them.
"""
