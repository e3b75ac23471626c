"""The plugin `lehr.HttpResource` keeps the contract of asset plugins, against a real server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lehr.base.clock import SystemClock
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.http_resource.payload import HTTP_RESOURCE, TYPES, HttpResource
from lehr.plugins.http_resource.plugin import HttpResourcePlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedSecrets
from tests.rest_api import Api, Handler, serving

REGISTRY = Registry(TYPES)
TOKEN = "hunter2-hunter2"
PASSWORD = "correct-horse-battery"
ITEM = "/things/lamp"


def asset_of(**fields: Any) -> Asset:
    return make_asset(AssetId("shop/lamp"), HTTP_RESOURCE, HttpResource(**fields), {})


@contextlib.contextmanager
def refusing(api: Api, status: int) -> Iterator[None]:
    """The server answers every request with this status, and repeats the credentials."""

    def refuse(handler: Handler) -> bool:
        handler.answer(status, {"message": f"{handler.headers['authorization']} {handler.body!r}"})
        return True

    api.trouble = refuse
    yield
    api.trouble = None


@contextlib.contextmanager
def talking_nonsense(api: Api) -> Iterator[None]:
    def answer(handler: Handler) -> bool:
        handler.answer(200, b"<html>\x1b[31m")
        return True

    api.trouble = answer
    yield
    api.trouble = None


@contextlib.contextmanager
def breaking_off(api: Api) -> Iterator[None]:
    api.trouble = Handler.reset
    yield
    api.trouble = None


def at_url(api: Api, size: int) -> dict[str, Any]:
    return {"url": api.base + ITEM, "body": {"name": "lamp", "size": size, "labels": {"room": "hall"}}}


def in_a_collection(api: Api, size: int) -> dict[str, Any]:
    body = {"name": "lamp", "size": size}
    return {"collection": f"{api.base}/things", "match": "/name", "body": body, "update": "patch"}


def disturb(api: Api) -> None:
    for path in [path for path, item in api.items.items() if item.get("name") == "lamp"]:
        api.put(path, {**api.items[path], "size": 1000})


@pytest.mark.parametrize("form", [at_url, in_a_collection])
@pytest.mark.parametrize("etags", [True, False], ids=["etags", "none"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, etags: bool, form: Callable[[Api, int], dict[str, Any]]) -> None:
    with serving() as api:
        api.etags, api.token = etags, TOKEN
        for number in range(5):
            api.made({"name": f"chair {number}"})
        known = {"credentials": Secret("env:TOKEN"), "secrets": {"/password": Secret("env:PASSWORD")}}
        secrets = FixedSecrets({"env:TOKEN": TOKEN, "env:PASSWORD": PASSWORD})
        subject = Subject(
            make=lambda: HttpResourcePlugin(
                SystemClock(), secrets=secrets, request_seconds=2.0, settle_seconds=0.3
            ),
            registry=REGISTRY,
            asset=asset_of(**form(api, 1), **known),
            changed=asset_of(**form(api, 2), **known),
            disturb=lambda: disturb(api),
            observe=api.everything,
            secret=TOKEN,
            troubles=(
                lambda: refusing(api, 403),
                lambda: refusing(api, 500),
                lambda: refusing(api, 503),
                lambda: talking_nonsense(api),
                lambda: breaking_off(api),
            ),
            query=(f"{api.base}/things", "match=/name", "fields=name,size", "credentials=env:TOKEN"),
            interruptions=6,
        )
        asyncio.run(rule(subject))
        assert all(PASSWORD not in text for text in subject.shown)
