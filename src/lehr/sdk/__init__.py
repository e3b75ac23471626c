"""Everything that authors of sources, generators, validators, plugins and checks import.

In: `lehr.model` and `lehr.base`. Out: the protocols through which the stages meet
the parts that do the work.

Architecture invariant: no stage is imported here, and no I/O is done here.
"""
