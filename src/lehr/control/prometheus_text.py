"""The text format of Prometheus."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """Durations, in seconds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect.bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def samples(self, name: str, labels: str = "") -> Iterator[str]:
        """Its lines. `labels` are rendered, such as `result="done"`."""
        more, total = f"{labels}," if labels else "", 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{more}le="{bound}"}} {total}'
        own = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{own} {self._sum:.6f}"
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
