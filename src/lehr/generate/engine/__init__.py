"""The incremental build: which outputs are kept, which are made again, and the worker process that does it.

`client` is the parent's side, `worker` the process, `build` one pass over a snapshot. `generators` runs what
has to run, in the order of `schedule`, through `runs` (calls in the sandbox) and `records` (their results).
`assembly` puts all outputs together, `memo` keeps them on disk, `verification` makes some of them again.
"""
