"""Judge files: how a canary is judged, in YAML, JSON or TOML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, Severity, file_problem
from lehr.base.pointers import pointer
from lehr.base.text import listed
from lehr.canary.definition import (
    Judge,
    Metric,
    buckets,
    columns_of,
    default_metrics,
    is_bucket,
    problems_of,
)
from lehr.cli.typed_file import FileType, read_typed
from lehr.generate.typing.problems import did_you_mean, quoted

_ABOUT = FileType("CAN010", "a judge", "write it like the example in docs/reference/canary-judge.md")


class JudgeFile(msgspec.Struct, frozen=True):
    """A judge, and where each of its metrics is.

    Attributes:
        places: of the metrics, in their order.
    """

    judge: Judge
    places: tuple[Position, ...] = ()


def read_judge(file: str, content: bytes) -> tuple[JudgeFile | None, list[Diagnostic]]:
    """The judge in a file; None if it has a problem."""
    read, problems = read_typed(file, content, Judge, _ABOUT)
    if read is None:
        return None, problems
    judge, document = read
    places = tuple(document.position(pointer(("metrics", index))) for index in range(len(judge.metrics)))
    problems = [
        file_problem("CAN010", places[problem.number], what=problem.what, fix=problem.fix)
        for problem in problems_of(judge.metrics)
    ]
    return (None if problems else JudgeFile(judge, places)), problems


def counter_problems(recording: str, file: JudgeFile, counters: Sequence[str]) -> Iterator[Diagnostic]:
    """Counters that the judge needs and the recording does not have; warnings about those not judged."""
    judge = file.judge
    for metric, at in zip(judge.metrics, file.places, strict=True):
        for name in columns_of(metric, counters).names():
            if name not in counters:
                what = f"metric {quoted(metric.name)} needs {quoted(name)}, which is not in {recording}"
                yield file_problem("CAN011", at, what=what, fix=_advice(metric, name, counters))
    metrics = judge.metrics or default_metrics(counters)
    if not metrics:
        what = (
            "nothing can be judged: there are no counters such as `requests` and `errors`, and no histogram"
        )
        fix = "define metrics in a judge file, and pass it with --judge"
        yield file_problem("CAN012", Position(recording), what=what, fix=fix)
        return
    used = {name for metric in metrics for name in columns_of(metric, counters).names()}
    unused = [name for name in counters if name not in used and not is_bucket(name)]
    if unused and not judge.metrics:
        what = f"not judged: {listed(unused)}"
        fix = "define metrics in a judge file, and pass it with --judge"
        yield file_problem("CAN013", Position(recording), what=what, fix=fix, severity=Severity.WARNING)


def _advice(metric: Metric, name: str, counters: Sequence[str]) -> str:
    bounds = buckets(counters).get(metric.histogram or "", {})
    if bounds and name not in (metric.of, metric.events):
        return f"bounds of {metric.histogram}: {listed([f'{bound:g}' for bound in bounds])}"
    return did_you_mean(name, counters, f"counters: {listed(counters)}")
