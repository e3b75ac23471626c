"""A controller that keeps etcd clusters at the size that intent says, one step at a time.

In: assets of the type `etcd.Cluster`. Out: processes of etcd on this machine, and `status.json` beside the
data of each cluster. `lehr controller etcd_operator --type etcd.Cluster` runs it.

| module | what |
|---|---|
| `plan` | what is seen to the one next step; pure |
| `operator` | looks, plans, carries out, tells |
| `machine` | processes, data and records of one cluster on this machine |
| `gateway` | what is asked of etcd, over HTTP |

Invariants:

* A membership change is made only if the members that answer are a quorum of what comes of it; a healthy
  member is removed only while all others are healthy.
* One change at a time. It is written down before it is asked for, and until it is known what came of it, by
  a read that saw all that was ever agreed on, nothing else is asked for; also not by the next controller,
  after this one was killed.
* A new member learns before it votes, so that growing never costs the quorum.
* Whoever has lost his data never comes back as who he was: he would have forgotten what he has promised.
* A cluster that has lost its quorum for good is left as it is, for a person. A new one is never begun in
  its place.
"""

from __future__ import annotations

from etcd_operator.operator import reconcile

__all__ = ["reconcile"]
