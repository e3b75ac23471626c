"""The plugin of workflows. The libraries of their engines are extras, imported when an asset needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lehr.base.clock import Clock
    from lehr.plugins.workflow.plugin import WorkflowPlugin
    from lehr.wiring.deployment import Deployment


def workflow_plugin(deployment: Deployment, clock: Clock) -> WorkflowPlugin:
    """The plugin. Assets whose engine has no library stall, and explain how to install it."""
    from lehr.base.blocking import Threads
    from lehr.plugins.workflow.connections import Connections, connector
    from lehr.plugins.workflow.engines import REQUEST_SECONDS
    from lehr.plugins.workflow.notes import Notes
    from lehr.plugins.workflow.observing import Observer
    from lehr.plugins.workflow.plugin import WorkflowPlugin
    from lehr.wiring.installed import secrets

    threads = Threads("workflow", WorkflowPlugin.traits.turns)
    return WorkflowPlugin(
        Observer(deployment.base, Threads("workflow observations", 8), clock, REQUEST_SECONDS),
        Connections(connector(deployment.base, threads), threads),
        Notes(deployment.state / "workflows", Threads("workflow notes", 4)),
        clock,
        secrets=secrets(deployment, "workflow"),
    )
