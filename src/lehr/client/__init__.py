"""For whoever reads intent and goes on reading it: caches that follow, and queues of what to look at.

In: anything that can be listed and watched (`lehr.sdk.watch.Watchable`): a store in this process, a
server elsewhere. Out: a cache that is never torn, handlers that hear of every change, and a loop that
reconciles asset by asset.

| module | what |
|---|---|
| `reflector` | lists once, then watches, for ever, whatever breaks in between |
| `informer` | one watch and one cache for many: handlers, indexes, resync |
| `deltas` | what has happened to each asset since somebody last looked |
| `queue` | which assets are to be looked at: each once, in order, again after a failure |
| `turns`, `agenda` | whose turn it is, and what is due when; the Enforcer's loops run on the same two |
| `controller` | an informer, a queue and your function: a controller |
| `request` | what the function of a controller is asked, where `lehr.controllers` or a test runs it |

The words are those of Kubernetes' client-go, whose list, watch, reflector, shared informer, delta queue
and work queue these are after.

Architecture invariants: one event loop, no threads; time comes in as a `Clock` and jitter as a `Chance`,
so a controller runs in virtual time as it does in production; no state but what a list can bring back.
"""

from __future__ import annotations

from lehr.client.controller import Controller
from lehr.client.deltas import Delta, DeltaQueue
from lehr.client.informer import SharedInformer
from lehr.client.queue import WorkQueue
from lehr.client.reflector import Reflector, Sink
from lehr.client.request import Reconciler, Request, controller_of

__all__ = [
    "Controller",
    "Delta",
    "DeltaQueue",
    "Reconciler",
    "Reflector",
    "Request",
    "SharedInformer",
    "Sink",
    "WorkQueue",
    "controller_of",
]
