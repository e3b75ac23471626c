"""The one place that chooses concrete sources, stores, plugins and checks, and composes programs of them.

| module | what it composes |
|---|---|
| `deployment` | nothing: where things are on this machine |
| `installed` | types, plugins, checks and secrets, with those of installed packages |
| `terraform`, `provider_types` | the plugin of Terraform providers, and checks of intent; their types |
| `workflows` | the plugin of workflows, whose engines have their libraries in extras |
| `metrics` | looks at the sources of metrics that the deployment configures |
| `remote_plugins` | plugins of other processes that the deployment configures |
| `selection_services` | target selections of installed packages, and those at addresses |
| `stores`, `sources` | the store, registers of claims, and what a server knows besides; the source |
| `dry_runs` | dry turns, for a command or a server |
| `generating` | workers that generate the assets of a workspace |
| `plane` | the parts of a control plane |
| `new_state`, `program` | a state folder; the running program, and its answers over HTTP |

Third parties add theirs with entry points, which `pip install` registers:

| group | names a function | that returns |
|---|---|---|
| `lehr.types` | `() ->` | an iterable of `lehr.model.types.AssetType` and `AddonType` |
| `lehr.plugins` | `(lehr.wiring.Deployment) ->` | a `lehr.sdk.plugin.AssetPlugin` |
| `lehr.checks` | `() ->` | a `lehr.sdk.check.CheckPlugin` |
| `lehr.metrics` | `(options) ->` | a `lehr.sdk.metrics.MetricSource` |
| `lehr.target_selections` | `() ->` | a `lehr.sdk.target_selection.TargetSelector` |

Imports are inside the functions, because commands that only read must not pay for them.
"""

from lehr.wiring.deployment import MEMO_FILE, STATE_FILE, Deployment, plugins_file
from lehr.wiring.generating import generation, generation_of_run
from lehr.wiring.installed import (
    calendars,
    checks,
    known_types,
    plugins,
    program_logs,
    registry,
    secrets,
    shutdown,
    supervised,
    workspace_files,
)
from lehr.wiring.metrics import looks
from lehr.wiring.plane import look_up, parts
from lehr.wiring.remote_plugins import described, provider_validators, remote_validators
from lehr.wiring.sources import past, primary_source, require_location, source
from lehr.wiring.stores import (
    claim_registers,
    claims_to_look_at,
    empty_store,
    has_store,
    inert_in,
    open_store,
    registry_of,
    store_place,
)
from lehr.wiring.terraform import validators

__all__ = [
    "MEMO_FILE",
    "STATE_FILE",
    "Deployment",
    "calendars",
    "checks",
    "claim_registers",
    "claims_to_look_at",
    "described",
    "empty_store",
    "generation",
    "generation_of_run",
    "has_store",
    "inert_in",
    "known_types",
    "look_up",
    "looks",
    "open_store",
    "parts",
    "past",
    "plugins",
    "plugins_file",
    "primary_source",
    "program_logs",
    "provider_validators",
    "registry",
    "registry_of",
    "remote_validators",
    "require_location",
    "secrets",
    "shutdown",
    "source",
    "store_place",
    "supervised",
    "validators",
    "workspace_files",
]
