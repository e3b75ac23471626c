"""Plugins in other processes have figures of their own in the metrics."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.control.metrics import Metrics
from lehr.sdk.plugin_meter import PluginMeter
from tests.unit.control.test_activity_log import Hand
from tests.unit.control.test_metrics import GAUGES, values


def test_calls_are_counted_by_outcome_and_timed_by_method() -> None:
    dns = PluginMeter('d"ns')
    dns.started()
    dns.called("Diff", "ok", 0.003)
    dns.called("Diff", "lost", 0.2)
    dns.called("Push", "ok", 7.0)
    dns.ended()
    dns.started()
    found = values(Metrics(Hand()), replace(GAUGES, plugins=(dns, PluginMeter("idle"))))
    name = r'plugin="d\"ns"'
    of_plugins = {key: value for key, value in found.items() if key.startswith("lehr_plugin_")}
    assert of_plugins[f"lehr_plugin_up{{{name}}}"] == 1
    assert of_plugins[f"lehr_plugin_starts_total{{{name}}}"] == 2
    assert of_plugins[f"lehr_plugin_ends_total{{{name}}}"] == 1
    assert of_plugins[f'lehr_plugin_calls_total{{{name},method="Diff",outcome="ok"}}'] == 1
    assert of_plugins[f'lehr_plugin_calls_total{{{name},method="Diff",outcome="lost"}}'] == 1
    assert of_plugins[f'lehr_plugin_call_seconds_bucket{{{name},method="Diff",le="0.005"}}'] == 1
    assert of_plugins[f'lehr_plugin_call_seconds_count{{{name},method="Diff"}}'] == 2
    assert of_plugins[f'lehr_plugin_call_seconds_sum{{{name},method="Push"}}'] == 7.0
    assert of_plugins['lehr_plugin_starts_total{plugin="idle"}'] == 0
    assert 'lehr_plugin_up{plugin="idle"}' not in of_plugins  # it was not needed yet


def test_a_plugin_that_has_ended_is_not_up() -> None:
    dns = PluginMeter("dns")
    dns.started()
    dns.ended()
    assert values(Metrics(Hand()), replace(GAUGES, plugins=(dns,)))['lehr_plugin_up{plugin="dns"}'] == 0
