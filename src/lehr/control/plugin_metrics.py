"""Plugins in other processes, in the text format of Prometheus. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from lehr.control.prometheus_text import family, histogram, label
from lehr.sdk.plugin_meter import PluginMeter


def plugin_families(plugins: Sequence[PluginMeter]) -> Iterator[str]:
    """Whether plugins are up, how often they have started and ended, their calls, and how long these took."""
    named = [(f'plugin="{label(plugin.name)}"', plugin) for plugin in plugins]
    yield from family(
        "lehr_plugin_up",
        "gauge",
        "1 while a plugin in another process can be called.",
        [f"lehr_plugin_up{{{name}}} {int(plugin.up)}" for name, plugin in named if plugin.up is not None],
    )
    yield from family(
        "lehr_plugin_starts_total",
        "counter",
        "How often a plugin was started, or connected to.",
        [f"lehr_plugin_starts_total{{{name}}} {plugin.starts}" for name, plugin in named],
    )
    yield from family(
        "lehr_plugin_ends_total",
        "counter",
        "How often a plugin or the connection to it has ended unexpectedly.",
        [f"lehr_plugin_ends_total{{{name}}} {plugin.ends}" for name, plugin in named],
    )
    yield from family(
        "lehr_plugin_calls_total",
        "counter",
        "Calls of plugins, by method and outcome.",
        [
            f'lehr_plugin_calls_total{{{name},method="{method}",outcome="{outcome}"}} {count}'
            for name, plugin in named
            for (method, outcome), count in sorted(plugin.calls.items())
        ],
    )
    durations = (
        histogram(found, "lehr_plugin_call_seconds", f'{name},method="{method}"')
        for name, plugin in named
        for method, found in sorted(plugin.seconds.items())
    )
    yield from family(
        "lehr_plugin_call_seconds",
        "histogram",
        "Durations of calls of plugins, by method.",
        itertools.chain.from_iterable(durations),
    )
