"""Why things are as they are: the root causes of all assets that are not converged; one asset over HTTP.

SIZE is the number of assets (100,000), of about 600 bytes each; one in twenty has not converged. Of these,
some wait in chains of twenty for an asset whose push fails; others wait for a freeze, a calendar, a person
who approves, or for each other. Root causes are measured at three sizes, to show how they grow.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks import figures
from benchmarks.echo import echoing
from benchmarks.manifests import PLACES
from benchmarks.query import Client, serving, wired
from benchmarks.store import PARTITION, assets, publish, timed
from lehr.model.asset import AssetId
from lehr.model.decision import Condition, Decision, Status, Verdict
from lehr.model.diff import Change, Diff, Goal
from lehr.model.reason import Reason
from lehr.model.writes import RecordDecision
from lehr.query.cause_reader import read_root_causes
from lehr.query.partition_view import Reading
from lehr.store.sqlite import SqliteStore

ASKED = 1000
AT_ONCE = 2000
CHAIN = 20
NOW = 1_700_000_000.0
ONE_IN = 20
SEED = 1
TIMES = 5

CONVERGED = Condition(Status.CONVERGED, Reason.AS_INTENDED, "production is as intended")
UNAPPROVED = Condition(Status.WAITING, Reason.APPROVAL_NEEDED, "it would destroy data", "approve it")
DIFFERS = Diff((Change("/content", "new" * 60, "old" * 60), Change("/mode", "0644", "0600")))
ALLOWED = Verdict("depends-on", allow=True, message="no other asset must go first")


def decision(id: AssetId, condition: Condition, *verdicts: Verdict) -> RecordDecision:
    """The record of a turn that ended so."""
    waiting = not condition.status.settled
    return RecordDecision(
        Decision(
            partition=PARTITION,
            asset=id,
            at=NOW,
            content=1,
            governing=1,
            goal=Goal.PRESENT,
            condition=condition,
            event="a new incarnation was published",
            diff=DIFFERS if waiting else None,
            verdicts=verdicts,
            evidence={"content_digest": "0" * 40},
        ),
        b"inputs" * 100,
    )


def waiting(id: AssetId, verdict: Verdict) -> RecordDecision:
    """It waits, since a check does not allow its push."""
    message = f"{verdict.check}: {verdict.message}"
    return decision(id, Condition(Status.WAITING, verdict.reason, message, verdict.unblock), verdict)


def behind(id: AssetId, other: AssetId) -> RecordDecision:
    """It waits until another asset has converged."""
    return waiting(
        id,
        Verdict(
            "depends-on",
            allow=False,
            reason=Reason.DEPENDENCY_DIFFERS,
            message=f"{other} differs in content and mode",
            unblock=f"wait until {other} converges",
            wait_for=(other,),
        ),
    )


def own(check: str, reason: Reason) -> Verdict:
    """The verdict of a check that waits for no asset."""
    return Verdict(check, allow=False, reason=reason, message=f"{check} is closed", unblock=reason.unblock)


FROZEN = own("freeze/0123456789", Reason.FROZEN)
CLOSED = own("calendar/office-hours", Reason.OUTSIDE_WINDOW)


def unconverged(ids: list[AssetId], chance: random.Random) -> Iterator[RecordDecision]:
    """A decision for each of `ids`."""
    rest = iter(ids)
    for id in rest:
        kind = chance.random()
        if kind < 0.02:
            message = "push failed 3 times: connection refused"
            yield decision(id, Condition(Status.STALLED, Reason.PUSH_STALLED, message, "fix the cause"))
            for before, following in itertools.pairwise((id, *itertools.islice(rest, CHAIN))):
                yield behind(following, before)
        elif kind < 0.6:
            yield waiting(id, FROZEN)
        elif kind < 0.9:
            yield waiting(id, CLOSED)
        elif kind < 0.95 and (other := next(rest, None)) is not None:
            yield behind(id, other)
            yield behind(other, id)
        else:
            yield decision(id, UNAPPROVED, ALLOWED)


def filled(folder: Path, size: int) -> tuple[SqliteStore, list[AssetId]]:
    """A store with a decision for each asset, and the ids of those that have not converged."""
    store = SqliteStore(wired(folder), background=True)
    chance = random.Random(SEED)
    ids: list[AssetId] = []
    for sequence, begin in enumerate(range(0, size // PLACES, AT_ONCE // PLACES)):
        numbers = range(begin, min(size // PLACES, begin + AT_ONCE // PLACES))
        made = [asset for number in numbers for asset in assets(number, 1)]
        publish(store, sequence, made, size)
        ids += (asset.id for asset in made)
    some = sorted(chance.sample(ids, size // ONE_IN))
    among = frozenset(some)
    records = [decision(id, CONVERGED) for id in ids if id not in among] + list(unconverged(some, chance))
    for begin in range(0, len(records), AT_ONCE):
        store.commit(records[begin : begin + AT_ONCE])
    return store, some


def root_causes(store: SqliteStore, size: int) -> None:
    """In this process."""
    reading = Reading(store, PARTITION, NOW, lambda type: False)
    seconds, found = [], None
    for _ in range(TIMES):
        began = time.perf_counter()
        found = read_root_causes(reading)
        seconds.append(time.perf_counter() - began)
    assert found is not None
    facts: dict[str, Any] = {"unconverged": found.count, "causes": len(found.causes), "best_of": TIMES}
    figures.report("root_causes", min(seconds) * 1000, "ms", size, **facts)


def over_http(url: str, ids: list[AssetId], size: int) -> None:
    """From another process; next to it a server that does nothing else, which is the floor."""
    chance = random.Random(SEED)
    targets = [f"/why?asset={quote(chance.choice(ids))}" for _ in range(ASKED)]
    with contextlib.closing(Client(url)) as here:
        for target in targets[:20]:
            content = here.get(target)
        with echoing(len(content)) as bare, contextlib.closing(Client(bare)) as floor:
            seconds = [(timed(here.get, target), timed(floor.get, "/")) for target in targets]
        for percent in (50, 99):
            mine, least = (
                figures.percentile(column, percent) * 1000 for column in zip(*seconds, strict=True)
            )
            peer = figures.Peer("an answer of the same size by bare asyncio", least)
            figures.report(f"http_why_p{percent}", mine, "ms", size, peer=peer, reads=ASKED)
        best = min(timed(here.get, "/causes") for _ in range(TIMES)) * 1000
        figures.report("http_causes", best, "ms", size, best_of=TIMES)


def main() -> None:
    """Print the figures."""
    whole = figures.size(100_000)
    for size in sorted({max(PLACES, whole // 100), max(PLACES, whole // 10), whole}):
        with tempfile.TemporaryDirectory() as name:
            store, ids = filled(Path(name), size)
            print(f"{size:,} assets, of which {len(ids):,} have not converged", file=sys.stderr)
            try:
                root_causes(store, size)
                if size == whole:
                    with serving(Path(name)) as url:
                        over_http(url, ids, size)
            finally:
                store.close()


if __name__ == "__main__":
    main()
