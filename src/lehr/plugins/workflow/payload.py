"""The payload of `lehr.Workflow`, and its checks before anything is asked: all problems at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from lehr.base.pointers import escaped
from lehr.model.secret import Secret
from lehr.model.types import AssetType
from lehr.plugins.command.payload import Command, Script
from lehr.plugins.http_resource import places
from lehr.plugins.http_resource.fields import at, is_pointer
from lehr.plugins.http_resource.payload import HttpResource, Status, Url
from lehr.plugins.workflow.addresses import EngineAddress, Name

WORKFLOW = "lehr.Workflow"

MOST_SECONDS = 7 * 86_400.0
MOST_SETTLE_SECONDS = 600.0
MOST_COMMAND_SECONDS = 60.0

Text = Annotated[str, msgspec.Meta(min_length=1)]


class HttpObservation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A JSON document that GET returns.

    Attributes:
        url: of the document.
        at: JSON pointer to the object within the document that is compared; empty for the whole document.
        headers: sent with the request. They must not be secret.
        credentials: sent as `Authorization: Bearer`, over https or on loopback.
        absent_on: statuses that mean that there is nothing.
    """

    url: Url
    at: str = ""
    headers: dict[str, str] = {}
    credentials: Secret | None = None
    absent_on: Annotated[tuple[Status, ...], msgspec.Meta(min_length=1)] = (404, 410)

    def __post_init__(self) -> None:
        if self.at and not is_pointer(self.at):
            raise ValueError(f"`at` must be a JSON pointer such as /firmware, not {self.at[:80]!r}")
        self.resource()

    def resource(self) -> HttpResource:
        """The request, as one for a resource.

        Raises:
            ValueError: it cannot be sent.
        """
        return HttpResource(
            url=self.url, headers=self.headers, credentials=self.credentials, absent_on=self.absent_on
        )


class CommandObservation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A JSON object that a program prints, of at most 64 KiB. `null` means that there is nothing.

    Attributes:
        run: a program with its arguments, or text for `/bin/sh -c`. Read-only; exits with 0.
        environment: additional variables; see `lehr.Command`. A value may be a reference to a secret.
        directory: working directory; see `lehr.Command`.
        timeout_seconds: after which it is ended.
    """

    run: Script
    environment: dict[str, str | Secret] = {}
    directory: Text | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=MOST_COMMAND_SECONDS)] = 10.0

    def __post_init__(self) -> None:
        Command(check=self.run, apply=self.run, environment=self.environment, directory=self.directory)


class Observation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How production is asked for what `intended` declares. Exactly one must be given.

    Attributes:
        http: a JSON document over HTTP.
        command: a program that prints JSON.
    """

    http: HttpObservation | None = None
    command: CommandObservation | None = None

    def __post_init__(self) -> None:
        if (self.http is None) == (self.command is None):
            raise ValueError("exactly one of `http` and `command` must be given")


class Signal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A message to a running workflow that it should end early.

    Attributes:
        signal: name of the signal (Temporal) or topic of the message (DBOS).
    """

    signal: Name


class Removal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The workflow that a turndown starts.

    Attributes:
        workflow: its name.
        input: its input; the one of the asset if not given.
        intended: fields that production must show afterwards; if not given, the observation must find
            nothing.
    """

    workflow: Name
    input: dict[str, Any] | None = None
    intended: Annotated[dict[str, Any], msgspec.Meta(min_length=1)] | None = None


class Workflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An aspect of production that a workflow moves to what is intended.

    When the observation differs from `intended`, a push starts the workflow with one argument: an object with
    the fields of `input` and `intended`. It is started at most once for each push, and never while one of the
    same asset is running.

    Attributes:
        intended: fields that the observation must show. Objects are compared field by field, lists as a
            whole; null means that the field is null or missing.
        observe: how production is asked.
        engine: where the workflow runs.
        workflow: its name.
        input: further fields of its argument. They are kept in the history of the engine and must not be
            secret.
        timeout_seconds: after which the engine ends the workflow.
        settle_seconds: how long production may take to show the result after the workflow has completed.
        when_superseded: what happens to a run when newer content overtakes it. `finish`: it continues to its
            end. `cancel`: the engine is asked to cancel it. A signal: it is sent. Choose one of the latter
            only if the workflow may be ended at any step.
        when_failed: `stall` after a failure, since engines repeat failed steps themselves; or `retry`, which
            starts the workflow again after growing pauses.
        version: JSON pointer to the field of `intended` that is a version, for checks that compare versions.
        disruptive: whether the workflow interrupts service.
        destructive: whether the workflow destroys what cannot be restored. Each push then needs approval.
        remove: what a turndown starts. Without it the asset cannot be turned down.
    """

    intended: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]
    observe: Observation
    engine: EngineAddress
    workflow: Name
    input: dict[str, Any] = {}
    timeout_seconds: Annotated[float, msgspec.Meta(ge=1, le=MOST_SECONDS)] = 3600.0
    settle_seconds: Annotated[float, msgspec.Meta(ge=0, le=MOST_SETTLE_SECONDS)] = 10.0
    when_superseded: Literal["finish", "cancel"] | Signal = "finish"
    when_failed: Literal["stall", "retry"] = "stall"
    version: str | None = None
    disruptive: bool = False
    destructive: bool = False
    remove: Removal | None = None

    def __post_init__(self) -> None:
        problems = [*_data_problems(self), *_version_problems(self)]
        if self.engine.dbos is not None and self.when_superseded == "cancel":
            problems.append(
                "`when_superseded` must not be `cancel` with DBOS, where a workflow counts as ended while "
                "its last step continues: use a signal"
            )
        if problems:
            raise ValueError("; ".join(problems))

    def argument(self) -> dict[str, Any]:
        """The argument with which the workflow is started."""
        return {**self.input, **self.intended}


def removal_argument(workflow: Workflow, removal: Removal) -> dict[str, Any]:
    """The argument with which the workflow of a turndown is started."""
    given = workflow.input if removal.input is None else removal.input
    return {**given, **(removal.intended or {})}


def _data_problems(workflow: Workflow) -> Iterator[str]:
    given: list[tuple[str, dict[str, Any]]] = [("intended", workflow.intended), ("input", workflow.input)]
    pairs = [("input", workflow.input, workflow.intended)]
    if workflow.remove is not None:
        given += [("remove.input", workflow.remove.input or {})]
        given += [("remove.intended", workflow.remove.intended or {})]
        used = workflow.input if workflow.remove.input is None else workflow.remove.input
        pairs += [("remove.input", used, workflow.remove.intended or {})]
    for name, data in given:
        yield from _json_problems(name, data)
    for name, one, other in pairs:
        for field in sorted(one.keys() & other.keys()):
            yield f"`{name}` and `intended` both have the field {field[:80]!r}"


def _json_problems(name: str, data: dict[str, Any]) -> Iterator[str]:
    try:
        HttpResource(url="http://localhost/", body=data)
    except ValueError as error:
        yield str(error).replace("`body", f"`{name}")


def _version_problems(workflow: Workflow) -> Iterator[str]:
    pointer = workflow.version
    if pointer is None:
        return
    if not is_pointer(pointer) or not isinstance(at(workflow.intended, pointer), str):
        yield "`version` must be a JSON pointer to text in `intended`, such as /version"


def _claims(workflow: Workflow) -> Iterator[str]:
    """What the observation shows: a second workflow for it would undo the first."""
    observation = workflow.observe.http
    if observation is not None:
        place = f"{places.canonical(observation.url)}#{observation.at}"
        yield from (f"workflow:{place}/{escaped(name)}" for name in workflow.intended)


TYPES = (AssetType(WORKFLOW, Workflow, claims=_claims),)
