"""The screen of a forecast: when each wave starts and ends, and what happened so far. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from lehr.base.clock import iso
from lehr.base.moments import seconds_of, span
from lehr.page.answers import attributes
from lehr.page.plots import Axis

WIDTH, ROW = 640, 40
_LEFT, _RIGHT, _HEAD = 88, 628, 24


class Bar(NamedTuple):
    """A stretch of time of a wave. `begin` and `end` are places; it is not certain before `surely`."""

    begin: float
    surely: float
    end: float
    open_end: bool


class Row(NamedTuple):
    """A wave in the picture.

    Attributes:
        at: the height of its middle.
        bar: None while nothing of it is known.
        updated, validated: where that happened; None if it has not.
    """

    name: str
    state: str
    at: float
    bar: Bar | None
    updated: float | None
    validated: float | None


class Picture(NamedTuple):
    """Waves over time."""

    height: float
    rows: tuple[Row, ...]
    now: float
    times: tuple[tuple[float, str], ...]


class ForecastView(NamedTuple):
    """The screen.

    Attributes:
        waves: name, units, state, and when it starts, is updated, is validated and ends.
        unknown: names of waves, each with why a time is unknown.
        compared: name, forecast and actual update, forecast and actual validation, and how punctual it is.
        following: units that are updated in a later rollout, each with when it is updated and validated.
        skipped: units that cannot be pushed, with reasons.
    """

    headline: str
    picture: Picture | None
    waves: tuple[tuple[str, ...], ...]
    unknown: tuple[tuple[str, str], ...]
    compared: tuple[tuple[str, ...], ...]
    following: tuple[tuple[str, ...], ...]
    skipped: tuple[tuple[str, str], ...]
    durations: tuple[tuple[str, str], ...]
    assumptions: tuple[str, ...]


class _Range(NamedTuple):
    """Moments in wall-clock seconds; None for unknown."""

    early: float | None
    late: float | None


def forecast_view(answer: Any, compared: Any) -> ForecastView:
    """The screen of the forecast in an answer of `rollout-forecast`.

    Args:
        compared: the `forecast` of an answer of `rollout`, from the beginning of the one under way; or None.
    """
    found = attributes(answer)
    now = seconds_of(found.made_at)
    rows = [] if compared is None else attributes(compared).rows
    return ForecastView(
        headline=_headline(_range(found.ends), now),
        picture=_picture(found, rows, now),
        waves=tuple(_wave(item, now) for item in found.waves),
        unknown=tuple((f"wave {item.number}", item.unknown) for item in found.waves if item.unknown),
        compared=tuple(_compared(item, now) for item in rows),
        following=tuple(
            (item.id, _shown(_range(item.updated), now), _shown(_range(item.validated), now))
            for item in found.following
        ),
        skipped=tuple(answer["skipped"].items()),
        durations=tuple(_durations(found)),
        assumptions=tuple(found.assumptions),
    )


def _headline(ends: _Range, now: float) -> str:
    return "its end is unknown" if ends == (None, None) else f"ends {_shown(ends, now)}"


def _range(found: Any) -> _Range:
    return _Range(_at(found.early), _at(found.late))


def _at(text: str | None) -> float | None:
    return None if text is None else seconds_of(text)


def _wave(item: Any, now: float) -> tuple[str, ...]:
    units = "1 unit" if len(item.units) == 1 else f"{len(item.units):,} units"
    if item.state == "over":
        return f"wave {item.number}", units, item.state, _shown(_range(item.starts), now), "-", "-", "-"
    times = (item.starts, item.updated, item.validated, item.ends)
    return f"wave {item.number}", units, item.state, *(_shown(_range(found), now) for found in times)


def _compared(item: Any, now: float) -> tuple[str, ...]:
    updated, validated = _at(item.updated), _at(item.validated)
    return (
        item.unit or f"wave {item.wave}",
        _shown(_range(item.expected_updated), now),
        "-" if updated is None else clock(updated, now),
        _shown(_range(item.expected_validated), now),
        "-" if validated is None else clock(validated, now),
        punctual(_range(item.expected_validated), validated),
    )


def punctual(expected: _Range, at: float | None) -> str:
    """How a moment compares with its forecast, in words."""
    if at is None or expected.early is None:
        return "-"
    if at < expected.early - 1:
        return f"{span(expected.early - at)} early"
    if expected.late is not None and at > expected.late + 1:
        return f"{span(at - expected.late)} late"
    return "in time"


def _durations(found: Any) -> Iterator[tuple[str, str]]:
    for kind, item in vars(found.durations).items():
        yield f"Pushes of {kind}", _duration(item)
    yield "Validations", _duration(found.validation)


def _duration(found: Any) -> str:
    if found.p50 is None or found.p95 is None:
        return "none recorded"
    return f"{found.count:,} recorded: half within {span(found.p50)}, 95% within {span(found.p95)}"


def _shown(found: _Range, now: float) -> str:
    early, late = ("unknown" if at is None else clock(at, now) for at in found)
    return early if early == late else f"{early} to {late}"


def clock(at: float, now: float) -> str:
    """A moment in UTC, without its date if that is today's."""
    date, _, time = iso(at).partition("T")
    return time if iso(now).startswith(date) else f"{date} {time}"


# --- the picture ---------------------------------------------------------------------


def _picture(found: Any, compared: Sequence[Any], now: float) -> Picture | None:
    actual = {item.wave: item for item in compared if not item.unit}
    known = list(_known(found.waves))
    known += [seconds_of(text) for item in actual.values() for text in (item.updated, item.validated) if text]
    if not known:
        return None
    axis = Axis(min(now, *known), max(now, *known), _LEFT, _RIGHT)
    rows = tuple(
        _row(item, place, axis, actual.get(item.number), now) for place, item in enumerate(found.waves)
    )
    times = tuple((mark.at, clock(mark.value, now)) for mark in axis.times(6))
    return Picture(_HEAD + ROW * len(rows) + 4, rows, axis.place(now), times)


def _known(waves: Iterable[Any]) -> Iterator[float]:
    for wave in waves:
        for times in (wave.starts, wave.updated, wave.validated, wave.ends):
            yield from (at for at in _range(times) if at is not None)


def _row(item: Any, place: int, axis: Axis, actual: Any, now: float) -> Row:
    def where(text: str | None) -> float | None:
        return None if text is None else axis.place(seconds_of(text))

    return Row(
        name=f"wave {item.number}",
        state=item.state,
        at=_HEAD + ROW * place + ROW / 2,
        bar=_bar(item, axis, now),
        updated=None if actual is None else where(actual.updated),
        validated=None if actual is None else where(actual.validated),
    )


def _bar(item: Any, axis: Axis, now: float) -> Bar | None:
    begin, ends = _range(item.starts).early, _range(item.ends)
    if begin is None:
        return None
    if item.state == "over":
        end = axis.place(_range(item.validated).late or now)
        return Bar(axis.place(begin), end, end, open_end=False)
    end = axis.end if ends.late is None else axis.place(ends.late)
    return Bar(axis.place(begin), axis.place(ends.early or begin), end, open_end=ends.late is None)
