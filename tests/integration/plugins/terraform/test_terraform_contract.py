"""The plugin of Terraform resources keeps the contract of asset plugins, over a provider in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import pytest

from lehr.model.asset import Asset
from lehr.plugins.terraform.provider import ProviderGoneError
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from tests.terraform.assets import (
    IDENTITY,
    OUTPUTS,
    PASSWORD,
    PROVIDER,
    REGISTRY,
    TOKEN,
    network,
    parameter,
    plugin_of,
    queue,
)
from tests.terraform.cloud import Cloud, failure

FORMS: dict[str, Callable[[int], Asset]] = {
    "cloud_queue": queue,
    "cloud_parameter": parameter,
    "cloud_network": network,
}
DISTURBED: dict[str, tuple[str, object]] = {
    "cloud_queue": ("delay", 1000),
    "cloud_parameter": ("description", "by hand"),
    "cloud_network": ("comment", "by hand"),
}


@contextlib.contextmanager
def troubled(cloud: Cloud, error: Exception) -> Iterator[None]:
    async def fail(call: str, type: str) -> None:
        if call in ("read", "plan", "apply", "import"):
            raise error

    cloud.before = fail
    yield
    cloud.before = None


@contextlib.contextmanager
def hanging(cloud: Cloud) -> Iterator[None]:
    async def hang(call: str, type: str) -> None:
        if call == "read":
            await asyncio.sleep(3600)

    cloud.before = hang
    yield
    cloud.before = None


@contextlib.contextmanager
def broken_after_writing(cloud: Cloud) -> Iterator[None]:
    async def die(call: str, type: str) -> None:
        raise ProviderGoneError(f"panic: {TOKEN}")

    cloud.after = die
    yield
    cloud.after = None


def disturb(cloud: Cloud, type: str) -> None:
    name, value = DISTURBED[type]
    for item in cloud.of(type):
        item[name] = value


@pytest.mark.parametrize("type", FORMS)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, type: str) -> None:
    cloud, form = Cloud(), FORMS[type]
    repeats = f"it is {TOKEN}" if type == "cloud_network" else f"it is {PASSWORD} and {TOKEN}"
    subject = Subject(
        make=lambda: plugin_of(cloud),
        registry=REGISTRY,
        asset=form(1),
        changed=form(2),
        disturb=lambda: disturb(cloud, type),
        observe=cloud.everything,
        others=(PROVIDER, IDENTITY),
        outputs=OUTPUTS,
        secret=TOKEN,
        troubles=(
            lambda: troubled(cloud, failure("AccessDenied", repeats)),
            lambda: troubled(cloud, failure("Throttling: rate exceeded", repeats)),
            lambda: troubled(cloud, failure("something else", repeats)),
            lambda: troubled(cloud, ProviderGoneError(repeats)),
            lambda: broken_after_writing(cloud),
            lambda: hanging(cloud),
        ),
        interruptions=8,
    )
    asyncio.run(rule(subject))
    assert all(PASSWORD not in text and "horse" not in text for text in subject.shown)
