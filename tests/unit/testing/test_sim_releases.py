"""Which writes of releases the judge of random histories lets pass, and which it reports."""

from __future__ import annotations

from lehr.base.digest import digest
from lehr.model.asset import AssetId
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.writes import WriteReleases
from lehr.testing.sim.release_judge import ReleaseJudge
from lehr.testing.world import PARTITION

_GOVERNANCE = digest("governance")


class Releases:
    """Releases of `web` over ten incarnations, and what the judge reports of them."""

    def __init__(self) -> None:
        self.reports: list[str] = []
        self.judge = ReleaseJudge(
            lambda rule, what: self.reports.append(f"{rule}: {what}"),
            lambda sequence: {},
            {},
            lambda: _GOVERNANCE,
            lambda id: True,
            lambda: 10,
        )

    def write(
        self,
        id: str = "",
        target: int = 0,
        rollout: str = "",
        kind: ReleaseKind = ReleaseKind.FORWARD,
        *,
        withdrawn: tuple[str, ...] = (),
        at: float = 0.0,
    ) -> None:
        """Release `web` to an incarnation, and withdraw releases."""
        release = Release(
            id=id,
            partition=PARTITION,
            asset=AssetId("web"),
            target=target,
            kind=kind,
            basis=ReleaseBasis(_GOVERNANCE),
            rollout=rollout,
            at=at,
        )
        releases = (release,) if id else ()
        write = WriteReleases(PARTITION, self.judge.version, _GOVERNANCE, at, releases, withdrawn, ())
        self.judge.written(write, None)


def rolled_back() -> Releases:
    """`web` was released to 2, and its rollout went back to 1."""
    found = Releases()
    found.write("r1", 1, kind=ReleaseKind.BASELINE)
    found.write("r2", 2, "first")
    found.write("r3", 1, "first", ReleaseKind.ROLLBACK)
    return found


def test_what_was_taken_back_never_counts_again() -> None:
    """Seed 5359 with a rollout policy: newer content withdrew the rollback, and was then withdrawn itself."""
    releases = rolled_back()
    releases.write("r4", 3, "second", withdrawn=("r3",))
    assert releases.reports == []
    releases.write(withdrawn=("r4",))
    assert releases.reports == ["I10: web is released to 2 again, from which its rollout went back"]


def test_a_rollback_counts_again_once_what_came_after_it_is_withdrawn() -> None:
    releases = rolled_back()
    releases.write("r4", 3, "second")
    releases.write(withdrawn=("r4",))
    assert releases.reports == []
    assert releases.judge.counting("web") == 1


def test_content_of_another_rollout_counts_again() -> None:
    releases = rolled_back()
    releases.write("r4", 2, "second")
    releases.write("r5", 3, "third")
    releases.write(withdrawn=("r5",))
    assert releases.reports == []
    assert releases.judge.counting("web") == 2


def test_pruning_leaves_what_counts_after_withdrawals() -> None:
    """Seed 5359 with a rollout policy: the judge let it go as the store did."""
    releases = Releases()
    for number in (1, 2, 3, 4, 5):
        releases.write(f"r{number}", number, f"rollout {number}")
    releases.write(withdrawn=("r3", "r4", "r5"), at=10.0)
    releases.judge.pruned(5.0)
    assert [item.id for item in releases.judge.history("web")] == ["r1", "r2"]


def test_releases_without_a_rollout_may_be_withdrawn_in_any_order() -> None:
    found = Releases()
    found.write("r1", 1, kind=ReleaseKind.BASELINE)
    found.write("r2", 2)
    found.write("r3", 1, kind=ReleaseKind.ROLLBACK)
    found.write(withdrawn=("r3",))
    assert found.reports == []
