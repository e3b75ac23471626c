"""From cumulative counters to what happened between two looks."""

from __future__ import annotations

from lehr.canary import CANARY, CONTROL, Look, LookRecorder, Sample, looks_of


def sample(time: float, replica: str = "a", group: str = CANARY, **values: float) -> Sample:
    return Sample(time, group, replica, values)


def recorded(*samples: Sample, warmup: float = 0.0, longest_gap: float = 300.0) -> Look:
    recorder = LookRecorder(warmup, longest_gap)
    for item in samples:
        recorder.add(item)
    return recorder.look(1000.0)


def counts(look: Look) -> dict[str, dict[str, float]]:
    return {item.replica: dict(item.counts) for item in look.replicas}


def test_the_first_sample_only_shows_where_counters_begin() -> None:
    assert recorded(sample(0, requests=5000)).replicas == ()
    look = recorded(sample(0, requests=5000, errors=7), sample(15, requests=5100, errors=9))
    assert counts(look) == {"a": {"requests": 100, "errors": 2}}
    assert look.replicas[0].seconds == 15


def test_a_counter_that_restarts_has_counted_since_zero() -> None:
    look = recorded(sample(0, requests=100), sample(15, requests=150), sample(30, requests=20))
    assert counts(look) == {"a": {"requests": 70}}
    assert look.restarts == 1


def test_all_counters_of_a_replica_restart_together() -> None:
    look = recorded(sample(0, requests=1000, errors=0), sample(15, requests=50, errors=3))
    assert counts(look) == {"a": {"requests": 50, "errors": 3}}
    look = recorded(
        sample(0, requests=1000, errors=5), sample(15, requests=50), sample(30, requests=60, errors=2)
    )
    assert counts(look)["a"] == {"requests": 60, "errors": 2}, "the sample without errors is left out"


def test_a_counter_that_cannot_have_restarted_has_not() -> None:
    """More errors than requests since the restart: they are counted by another process."""
    look = recorded(sample(0, requests=1000, errors=400), sample(15, requests=50, errors=402))
    assert counts(look) == {"a": {"requests": 50, "errors": 2}}


def test_a_missing_counter_is_unknown_and_not_zero() -> None:
    """All counters are counted over the same time: a rate needs both of its counters."""
    whole = sample(0, requests=100, errors=1), sample(45, requests=400, errors=9)
    partial = sample(15, requests=200), sample(30, requests=300)
    assert counts(recorded(whole[0], *partial, whole[1])) == {"a": {"requests": 300, "errors": 8}}
    assert counts(recorded(whole[0], *partial)) == {}
    late = recorded(whole[0], *partial, sample(45, requests=500), longest_gap=20)
    assert counts(late) == {"a": {"requests": 200}}, "it is gone: from 30 s on, the others count again"


def test_a_counter_that_appears_begins_there() -> None:
    look = recorded(sample(0, requests=100), sample(15, requests=200), sample(30, requests=300, errors=7))
    assert counts(look) == {"a": {"requests": 100}}
    look = recorded(
        *(sample(15 * n, requests=100 * n) for n in range(2)),
        *(sample(15 * n, requests=100 * n, errors=n) for n in range(2, 5)),
    )
    parts = [dict(item.counts) for item in look.replicas]
    assert parts == [{"requests": 100}, {"requests": 200, "errors": 2}]


def test_a_replica_without_a_new_sample_is_not_in_the_look() -> None:
    recorder = LookRecorder(0.0, 300.0)
    for item in (sample(0, requests=1), sample(15, requests=2), sample(0, "b", requests=1)):
        recorder.add(item)
    assert counts(recorder.look(60.0)) == {"a": {"requests": 1}}
    assert recorder.look(120.0).replicas == ()


def test_intervals_that_begin_during_the_warm_up_are_apart() -> None:
    rows = [sample(time, requests=time * 10, errors=time) for time in (0, 15, 30, 45)]
    found = recorded(*rows, warmup=30.0).replicas
    assert [(item.warmup, item.counts["requests"], item.seconds) for item in found] == [
        (True, 300, 30),
        (False, 150, 15),
    ]


def test_a_restart_is_not_a_new_warm_up() -> None:
    """Otherwise a canary that keeps crashing would never be judged."""
    rows = [sample(0, requests=0), sample(40, requests=90), sample(55, requests=10), sample(70, requests=25)]
    found = recorded(*rows, warmup=30.0).replicas
    assert [(item.warmup, item.counts["requests"]) for item in found] == [(True, 90), (False, 25)]


def test_a_gap_does_not_count() -> None:
    rows = [sample(0, requests=0), sample(600, requests=9000), sample(615, requests=9100)]
    look = recorded(*rows)
    assert counts(look) == {"a": {"requests": 100}}
    assert look.replicas[0].seconds == 15


def test_late_and_duplicate_samples_are_ignored() -> None:
    rows = [sample(0, requests=0), sample(30, requests=30), sample(15, requests=15), sample(30, requests=99)]
    assert counts(recorded(*rows)) == {"a": {"requests": 30}}


def test_a_name_in_both_groups_is_two_replicas() -> None:
    rows = [sample(0, requests=0), sample(0, group=CONTROL, requests=500), sample(15, requests=10)]
    look = recorded(*rows, sample(15, group=CONTROL, requests=520))
    assert [(item.group, item.counts["requests"]) for item in look.replicas] == [(CANARY, 10), (CONTROL, 20)]


def test_looks_are_at_regular_times_and_at_the_end() -> None:
    rows = [sample(100 + time, requests=time) for time in range(0, 151, 15)]
    assert [look.at for look in looks_of(rows, 60.0, 0.0, 300.0)] == [160, 220, 250]
    assert sum(look.replicas[0].counts["requests"] for look in looks_of(rows, 60.0, 0.0, 300.0)) == 150


def test_a_year_without_samples_is_not_a_million_looks() -> None:
    rows = [sample(0, requests=0), sample(3e7, requests=1)]
    assert len(list(looks_of(rows, 1.0, 0.0, 300.0))) < 5


def test_no_samples_are_no_looks() -> None:
    assert list(looks_of([], 60.0, 0.0, 300.0)) == []


def test_looks_begin_at_the_push_and_leave_out_what_was_before() -> None:
    rows = [sample(100 + 10 * n, requests=10 * n) for n in range(10)]
    found = list(looks_of(rows, 30.0, 0.0, 300.0, pushed_at=125.0))
    assert [look.at for look in found] == [155, 185, 190]
    assert sum(row.counts["requests"] for look in found for row in look.replicas) == 60
    assert [row.begin for look in found for row in look.replicas] == [130, 150, 180]
    assert list(looks_of([], 30.0, 0.0, 300.0, pushed_at=None)) == []
