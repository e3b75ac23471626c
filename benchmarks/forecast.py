"""How long a forecast of two weeks takes.

python -m benchmarks.forecast [ASSETS]    so many assets, 1,000 by default, in 20 clusters

A unit is a cluster, with its assets pushed one after the other. Waves grow from one cluster to all, with six
hours of soak each. Every cluster has a calendar of its own: office hours, two closed times and the public
holidays of a country. Finding the closed times in them is part of the figure. In a second figure, each asset
is a unit, and at most 2 % are not validated at the same time, which takes longer than two weeks. `known` is
the number of waves whose end is known. Everything is seeded.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import msgspec

from benchmarks.figures import report, size
from lehr.checks.calendar import Calendar
from lehr.checks.closed_spans import closed_spans
from lehr.rollouts import TargetSelection, Unit, Wave
from lehr.rollouts.forecast import Forecast, ForecastInputs, UnitWork, forecast

CLUSTERS = 20
_DAY = 86_400.0
_FOR = 14 * _DAY
_NOW = 1_795_000_000.0
_SOAK = 6 * 3600.0
_ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "UTC", "Australia/Sydney")
_COUNTRIES = ("DE", "US", "JP", "GB", "AU")
_KINDS = ("lehr.File", "lehr.Process", "lehr.Balancer")


def calendars() -> dict[str, Calendar]:
    """One for each cluster."""
    found = {}
    for number in range(CLUSTERS):
        found[f"calendar-{number:02}"] = msgspec.convert(
            {
                "select": {"labels": {"cluster": f"cluster-{number:02}"}},
                "timezone": _ZONES[number % len(_ZONES)],
                "windows": [{"days": ["mon", "tue", "wed", "thu", "fri"], "from": "08:00", "to": "18:00"}],
                "closed": [
                    {"from": "fri 15:00", "to": "fri 18:00", "reason": "no pushes before a weekend"},
                    {"from": "tue 12:00", "to": "tue 13:00", "reason": "maintenance of the network"},
                ],
                "holidays": {"country": _COUNTRIES[number % len(_COUNTRIES)]},
            },
            Calendar,
        )
    return found


def clusters(assets: int) -> list[UnitWork]:
    """Units that are clusters."""
    each = assets // CLUSTERS
    return [
        UnitWork(
            Unit(id=f"cluster-{number:02}", labels={"stage": "canary" if number < 2 else "production"}),
            tuple(_KINDS[place % len(_KINDS)] for place in range(each)),
            (f"calendar-{number:02}",),
        )
        for number in range(CLUSTERS)
    ]


def single_assets(assets: int) -> list[UnitWork]:
    """Units that are assets."""
    return [
        UnitWork(
            Unit(id=f"asset-{number:05}"),
            (_KINDS[number % len(_KINDS)],),
            (f"calendar-{number % CLUSTERS:02}",),
        )
        for number in range(assets)
    ]


def measured(works: Sequence[UnitWork], selection: TargetSelection) -> tuple[float, Forecast]:
    """Seconds, and the forecast."""
    chance = random.Random(7)
    pushes = {kind: [chance.lognormvariate(2.0, 0.6) for _ in range(1000)] for kind in _KINDS}
    given = calendars()
    begun = time.perf_counter()
    found = forecast(
        ForecastInputs(
            selection=selection,
            works=tuple(works),
            now=_NOW,
            pushes=pushes,
            validations=[chance.uniform(60, 600) for _ in range(1000)],
            calendars={name: closed_spans(item, _NOW, _NOW + _FOR) for name, item in given.items()},
            horizon_seconds=_FOR,
        )
    )
    return time.perf_counter() - begun, found


def waves() -> TargetSelection:
    """From one cluster to all."""
    return TargetSelection(
        waves=tuple(Wave(units=amount, soak_seconds=_SOAK) for amount in (1, "10%", "25%", "50%", None))
    )


def main() -> None:
    assets = size(1000)
    for name, works, selection in (
        ("forecast_clusters", clusters(assets), waves()),
        ("forecast_assets", single_assets(assets), TargetSelection(at_most="2%")),
    ):
        seconds, found = measured(works, selection)
        known = sum(wave.ends.late is not None for wave in found.waves)
        report(name, seconds, "s", assets, clusters=CLUSTERS, waves=len(found.waves), known=known)


if __name__ == "__main__":
    main()
