"""Sources of metrics, as the deployment configures them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lehr.wiring.deployment import Deployment
from lehr.wiring.installed import blaming, installed, secrets

if TYPE_CHECKING:
    from pathlib import Path

    from lehr.monitoring.configuration import InstalledDefinition, MetricSources, SourceDefinition
    from lehr.monitoring.looks import Looks
    from lehr.sdk.metrics import MetricSource
    from lehr.sdk.secrets import Secrets


def looks(deployment: Deployment, patience: float | None = 2.0) -> Looks:
    """Looks at the sources in the file that the deployment names; without one, at none.

    Args:
        patience: as in `lehr.monitoring.looks.Looks`.

    Raises:
        StalledError: the file cannot be used, or an installed source cannot.
    """
    from lehr.base.clock import SystemClock
    from lehr.monitoring.looks import Looks

    configured = {} if deployment.metrics is None else read_sources(deployment.metrics).sources
    read = secrets(deployment, "metrics")
    sources = {name: _source(item, read, deployment.base) for name, item in configured.items()}
    return Looks(sources, SystemClock(), patience)


def read_sources(file: Path) -> MetricSources:
    """The sources that a file configures.

    Raises:
        StalledError: it cannot be read, or is not such a file.
    """
    import msgspec

    from lehr.base import documents
    from lehr.base.errors import StalledError, raised_as
    from lehr.monitoring.configuration import MetricSources

    what = f"the metric sources in {file} cannot be used"
    fix = "write it like the example in docs/how-to/hold-pushes-on-alerts.md"
    with raised_as(StalledError, what, code="WIR105", fix=fix):
        content = file.read_bytes()
    loaded = documents.load(file.name, content)
    for problem in loaded.diagnostics:
        why = f"line {problem.at.line}: {problem.what}" if problem.at else problem.what
        raise StalledError(what, code="WIR105", why=why, fix=fix)
    if len(loaded.documents) != 1:
        raise StalledError(what, code="WIR105", why="it is not a single mapping", fix=fix)
    with raised_as(StalledError, what, code="WIR105", fix=fix, on=(msgspec.ValidationError, ValueError)):
        return msgspec.convert(loaded.documents[0].value, MetricSources)


def _source(definition: SourceDefinition, read: Secrets, base: Path) -> MetricSource:
    from lehr.base.clock import SystemClock
    from lehr.monitoring.command import CommandSource
    from lehr.monitoring.configuration import CommandDefinition, InstalledDefinition, PrometheusDefinition
    from lehr.monitoring.json_address import JsonAddress
    from lehr.monitoring.prometheus import PrometheusSource
    from lehr.monitoring.web import Web
    from lehr.plugins.environment import small_environment

    if isinstance(definition, InstalledDefinition):
        return _installed_source(definition)
    if isinstance(definition, CommandDefinition):
        return CommandSource(definition, read, base, small_environment())
    web = Web(definition, read, base)
    if isinstance(definition, PrometheusDefinition):
        return PrometheusSource(web, definition.timeout, SystemClock())
    return JsonAddress(web, definition.timeout)


def _installed_source(definition: InstalledDefinition) -> MetricSource:
    from lehr.base.errors import StalledError
    from lehr.sdk.metrics import MetricSource

    found = [entry for entry in installed("lehr.metrics") if entry.name == definition.name]
    if not found:
        raise StalledError(
            f"no installed package has the metric source {definition.name}",
            code="WIR106",
            fix="install it, or correct `name`: it is an entry point of the group lehr.metrics",
        )
    with blaming(found[0]):
        source: object = found[0].load()(definition.options)
        if not isinstance(source, MetricSource):
            raise TypeError(f"it returned a {type(source).__name__}, not a MetricSource")
        return source
