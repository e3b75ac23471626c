"""The plugin `lehr.Workflow` keeps the contract of asset plugins, over an engine in memory."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.workflow.addresses import EngineAddress, Temporal
from lehr.plugins.workflow.connections import Connections
from lehr.plugins.workflow.engines import UnansweredError
from lehr.plugins.workflow.notes import Notes
from lehr.plugins.workflow.observing import Observer
from lehr.plugins.workflow.payload import (
    TYPES,
    WORKFLOW,
    CommandObservation,
    HttpObservation,
    Observation,
    Removal,
    Workflow,
)
from lehr.plugins.workflow.plugin import WorkflowPlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedSecrets
from tests.rest_api import Api, Handler, serving
from tests.workflow_world import MemoryEngine

REGISTRY = Registry(TYPES)
TOKEN = "hunter2-hunter2"
KEY = "correct-horse-battery"
PATH = "/switches/sw1"
SECRETS = FixedSecrets({"env:TOKEN": TOKEN, "env:KEY": KEY})

LOOK = """\
import os, sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + os.environ["TOKEN"]})
try:
    print(urllib.request.urlopen(request).read().decode())
except urllib.error.HTTPError as error:
    if error.code != 404:
        sys.exit(f"{error} for {os.environ['TOKEN']}")
    print("null")
"""


def over_http(api: Api) -> Observation:
    return Observation(http=HttpObservation(url=api.base + PATH, credentials=Secret("env:TOKEN")))


def by_command(api: Api) -> Observation:
    run = (sys.executable, "-c", LOOK, api.base + PATH)
    return Observation(command=CommandObservation(run=run, environment={"TOKEN": Secret("env:TOKEN")}))


def asset_of(observe: Observation, version: str, **fields: Any) -> Asset:
    engine = EngineAddress(
        temporal=Temporal(address="127.0.0.1:7233", task_queue="firmware", api_key=Secret("env:KEY"))
    )
    payload = Workflow(
        intended={"version": version},
        observe=observe,
        engine=engine,
        workflow="UpdateFirmware",
        input={"switch": "sw1"},
        settle_seconds=0.2,
        version="/version",
        remove=Removal(workflow="Decommission"),
        **fields,
    )
    return make_asset(AssetId("switches/sw1"), WORKFLOW, payload, {})


def plugin_of(engine: MemoryEngine, folder: Path) -> WorkflowPlugin:
    threads = Threads("workflow", 4)
    clock = SystemClock()
    return WorkflowPlugin(
        Observer(folder, threads, clock, 2.0),
        Connections(lambda address, secret: engine, threads),
        Notes(folder / "notes", threads),
        clock,
        secrets=SECRETS,
        request_seconds=0.2,
    )


@contextlib.contextmanager
def refusing(api: Api) -> Iterator[None]:
    """The server answers every request with 500, and repeats the credentials."""

    def refuse(handler: Handler) -> bool:
        handler.answer(500, {"message": f"{handler.headers['authorization']}"})
        return True

    api.trouble = refuse
    yield
    api.trouble = None


@contextlib.contextmanager
def unreachable(engine: MemoryEngine, kind: type[TransientError | StalledError]) -> Iterator[None]:
    def trouble(what: str) -> None:
        raise kind("the engine does not answer")

    engine.trouble = trouble
    yield
    engine.trouble = lambda what: None


@contextlib.contextmanager
def silent(engine: MemoryEngine) -> Iterator[None]:
    """Requests to start are lost."""

    def lost(what: str) -> None:
        if what == "start":
            raise UnansweredError("no answer")

    engine.trouble = lost
    yield
    engine.trouble = lambda what: None


@contextlib.contextmanager
def failing(engine: MemoryEngine) -> Iterator[None]:
    engine.failing = f"could not flash with {TOKEN} and {KEY}\n\x1b[31m" + "x" * 5000
    yield
    engine.failing = ""


@pytest.mark.parametrize("form", [over_http, by_command])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, form: Callable[[Api], Observation], tmp_path: Path) -> None:
    with serving() as api:
        api.token = TOKEN
        engine = MemoryEngine(api, PATH)
        subject = Subject(
            make=lambda: plugin_of(engine, tmp_path),
            registry=REGISTRY,
            asset=asset_of(form(api), "2"),
            changed=asset_of(form(api), "3"),
            disturb=lambda: api.put(PATH, {"version": "1"}),
            observe=api.everything,
            secret=TOKEN,
            troubles=(
                lambda: refusing(api),
                lambda: unreachable(engine, TransientError),
                lambda: unreachable(engine, StalledError),
                lambda: silent(engine),
                lambda: failing(engine),
            ),
            interruptions=6 if form is over_http else 3,
        )
        asyncio.run(rule(subject))
        assert all(KEY not in text for text in subject.shown)
        assert engine.most_at_once <= 1
