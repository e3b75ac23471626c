"""Client library for programs that follow intent: caches that stay current, and work queues.

In: anything that can be listed and watched (`lehr.sdk.watch.Watchable`): a store in this process, a
server elsewhere. Out: a cache that is never torn, handlers that are called for every change, and a loop that
reconciles asset by asset.

| module | what |
|---|---|
| `reflector` | lists once, then watches forever, whatever breaks in between |
| `informer` | one watch and one cache for many: handlers, indexes, resync |
| `deltas` | the changes of each asset since it was last taken |
| `queue` | assets to process: each once, in order, again after a failure |
| `turns`, `agenda` | ready and scheduled items; the Enforcer's loops use the same two |
| `controller` | an informer, a queue and your function: a controller |
| `request` | the request that a controller's function receives, run by `lehr.controllers` or a test |

The terms are those of Kubernetes' client-go, on whose list, watch, reflector, shared informer, delta queue
and work queue these are modelled.

Architecture invariants: one event loop, no threads; time comes in as a `Clock` and jitter as a `Chance`,
so a controller runs in virtual time as it does in production; no state except what a list can restore.
"""

from __future__ import annotations

from lehr.client.controller import Controller, Reconciler, Request, controller_of
from lehr.client.deltas import Delta, DeltaQueue
from lehr.client.informer import SharedInformer
from lehr.client.queue import WorkQueue
from lehr.client.reflector import Reflector, Sink

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
