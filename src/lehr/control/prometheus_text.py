"""The text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lehr.base.durations import Durations

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def histogram(durations: Durations, name: str, labels: str = "") -> Iterator[str]:
    """The lines of a histogram. `labels` are rendered, such as `result="done"`."""
    more, total = f"{labels}," if labels else "", 0
    for bound, count in zip((*durations.bounds, "+Inf"), durations.counts, strict=True):
        total += count
        yield f'{name}_bucket{{{more}le="{bound}"}} {total}'
    own = f"{{{labels}}}" if labels else ""
    yield f"{name}_sum{own} {durations.sum:.6f}"
    yield f"{name}_count{own} {total}"


def family(name: str, kind: str, help: str, samples: Iterable[str]) -> Iterator[str]:
    """A metric with its samples, which are lines."""
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"
    yield from samples


def value(name: str, kind: str, help: str, value: float) -> Iterator[str]:
    """A metric with one sample."""
    return family(name, kind, help, [f"{name} {value}"])


def label(text: str) -> str:
    """The value of a label, escaped."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
