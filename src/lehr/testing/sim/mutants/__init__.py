"""Planted bugs: does the simulation find the bugs it should?

In: mutations of the program, each a unified diff with a few words about it. Out: for each, the first
history or scenario that breaks a rule because of it, or that none does.

A mutation is a file `NAME.patch`:

    # Bug: stale read
    # Thought: The dependency was looked at a moment ago; that is recent enough.
    # Breaks: I3
    # Found: seed 17
    --- lehr/store/sql/admission.py
    +++ lehr/store/sql/admission.py
    @@ -1,4 +1,3 @@
    ...

`Bug` is the class of bugs that it represents, `Thought` what its author may have had in mind,
`Breaks` the invariant of the architecture that it breaks, and `Found` the case that last found it,
which is played first: a history, else a scenario, else a test of the repository. Where a bug lies
in what histories do not simulate, `# Outside: claims` names that; nine in ten of the others must be
found by histories alone. Other files need none of these lines: any output of `diff -u` or `git
diff` can be judged.

The package is copied into a folder of its own, the copy is changed, and the suite runs against the
copy in processes of its own: the random histories from seed 0 up, then, where the sources are, the
scenarios of the tests. A history that does not end is also a finding. A finding is repeated by its
seed alone:

    lehr sim mutant NAME --seed 17            play it, and report which rule it breaks
    lehr sim mutant NAME --seed 17 --show     narrate it

| module | what |
|---|---|
| `patch` | unified diffs, applied by git to code that may have moved a little |
| `mutation` | a mutation and its description; those in the repository (`tests/simulation/planted`) |
| `judge` | copies, changes, plays and finds |
| `player` | the process that plays against a copy |

Architecture invariant: the judge is never changed. A mutation that touches `lehr.testing` is
refused.
"""
