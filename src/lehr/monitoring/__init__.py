"""Monitoring: asks sources of metrics about production, again and again.

In: questions of `lehr.model.monitoring`, and the sources that the deployment configures. Out: the findings of
the looks at each question, as `lehr.sdk.metrics.Metrics`.

| module | what |
|---|---|
| `configuration` | the file that configures sources |
| `looks` | asks each question once in its interval, however many assets it governs |
| `prometheus`, `json_address`, `web`, `command` | the sources that ship with Lehr |
| `prometheus_answers`, `json_values` | from answers to values; pure |
| `http_exchange` | one request, without redirects, its answer bounded in size |

Invariant: a source that hangs, lies or fails delays no other, and lets nothing through.
"""
