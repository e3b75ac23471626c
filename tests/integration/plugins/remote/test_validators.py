"""Validators of a plugin in another process: whatever goes wrong, no change passes without an answer."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Severity
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.declared import ReferenceField, TypeDeclaration, schema_of
from lehr.model.incarnation import AssetChange
from lehr.model.types import AssetType, Registry
from lehr.plugins.remote import validator as remote_validator
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.validator import RemoteValidator
from lehr.sdk.asked_validator import Finding
from lehr.sdk.validator import Limits, WhenDown
from lehr.validate import DeltaProposal, MappingPredecessor
from lehr.wiring.deployment import Deployment
from lehr.wiring.installed import plugins
from lehr.wiring.remote_plugins import read_plugins, remote_plugins, remote_validators
from tests.integration.plugins.remote.managed import HERE, connection

SITE = AssetType("shop.Site", schema_of(TypeDeclaration({}, {"/host": ReferenceField()})))
REGISTRY = Registry([SITE], ADDONS)


def site(id: str = "web", **payload: Any) -> Asset:
    return make_asset(AssetId(id), "shop.Site", {"name": id, "owner": "mira", "host": "h1", **payload}, {})


def host(id: str) -> Asset:
    return make_asset(AssetId(id), "shop.Host", {}, {})


def new(*assets: Asset) -> list[AssetChange]:
    return [AssetChange(asset.id, None, asset) for asset in assets]


def gone(*assets: Asset) -> list[AssetChange]:
    return [AssetChange(asset.id, asset, None) for asset in assets]


def proposal(changes: Iterable[AssetChange], *others: Asset) -> DeltaProposal:
    changes = list(changes)
    before = {change.id: change.before for change in changes if change.before is not None}
    known = before | {asset.id: asset for asset in others}
    return DeltaProposal(Partition("shop"), REGISTRY, Limits(), changes, MappingPredecessor(known, REGISTRY))


Answer = Sequence[Finding] | LehrError


def asked(
    changes: Iterable[AssetChange],
    *others: Asset,
    fault: str = "",
    name: str = "naming",
    **environment: str,
) -> Answer:
    """The answer of a validator in a new process."""

    async def main() -> Answer:
        arguments = [fault] if fault else []
        opened = connection("validator_plugin.py", [], environment, arguments=arguments)
        try:
            return await answer_of(opened, changes, *others, name=name)
        finally:
            await opened.close()

    return asyncio.run(main())


async def answer_of(
    opened: Connection, changes: Iterable[AssetChange], *others: Asset, name: str = "naming"
) -> Answer:
    return await RemoteValidator(name, opened, SystemClock()).ask(proposal(changes, *others), Inline())


def found(answer: Answer) -> list[tuple[str, str | None, str]]:
    assert not isinstance(answer, LehrError), answer
    return [(item.code, item.asset, item.pointer) for item in answer]


def test_a_good_change_has_no_problems() -> None:
    assert asked(new(site())) == []


def test_problems_have_severity_asset_pointer_and_texts() -> None:
    bad = make_asset(AssetId("web"), "shop.Site", {"name": "Web"}, {})
    assert asked(new(bad, site("blog"))) == [
        Finding(
            code="N001",
            severity=Severity.ERROR,
            what="the name Web has capital letters",
            why="it is part of URLs",
            fix="write web",
            asset=AssetId("web"),
            pointer="/payload/name",
        ),
        Finding(
            code="N002",
            severity=Severity.WARNING,
            what="web has no owner",
            fix="add `owner`",
            asset=AssetId("web"),
        ),
    ]


def test_it_asks_for_assets_as_the_change_leaves_them() -> None:
    """`h1` exists and is removed, `h2` is new, `h3` was there before, `h4` is nowhere."""
    sites = [site(f"s{number}", host=f"h{number}") for number in (1, 2, 3, 4)]
    changes = [*new(*sites, host("h2")), *gone(host("h1"))]
    expected = [("H001", "s1", "/payload/host"), ("H001", "s4", "/payload/host")]
    for fault in ("", "one-by-one"):
        answer = asked(changes, host("h3"), name="hosts", fault=fault)
        assert [item for item in found(answer) if item[0] == "H001"] == expected


def test_it_asks_for_the_referrers_of_an_asset() -> None:
    """Both an unchanged referrer and the removed asset may have problems."""
    answer = asked(gone(host("h1")), site("web"), site("blog", host="h2"), name="hosts")
    assert found(answer) == [("H002", "web", "/payload/host"), ("H003", "h1", "")]


def test_it_may_ask_for_what_no_asset_is_called() -> None:
    answer = asked(new(site()), fault="asks-odd")
    assert not isinstance(answer, LehrError), answer
    assert [item.what for item in answer] == ["3 answers, 0 assets"]


def test_payloads_of_known_types_are_classes() -> None:
    line = make_asset(AssetId("motd"), "example.Line", {"path": "x", "text": ""}, {})
    assert found(asked(new(line), name="lines")) == [("L001", "motd", "/payload/text")]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("dies", "exit code 3: out of paper"),
        ("status", "status INTERNAL"),
        ("huge", "status RESOURCE_EXHAUSTED"),
        ("other-answer", "nonsense: an answer to another request"),
        ("no-result", "nonsense: an answer without a result"),
        ("transient", "the rules are being loaded"),
        ("asks-for-ever", "it has asked for more 100 times"),
        ("asks-again", "it asks for nothing, or only for what it has"),
        ("asks-nothing", "it asks for nothing, or only for what it has"),
        ("asks-much", "it has asked for more than 10,000 assets and referrers"),
        ("no-code", "a problem with the code ''"),
        ("other-code", "a problem with the code 'a b'"),
        ("lehr-code", "a problem with the code 'x/VAL051'"),
        ("long-code", "a problem with the code 'NNN"),
        ("no-what", "a problem without a description"),
        ("unknown-asset", "a problem of the asset 'elsewhere', which it was not shown"),
        ("no-pointer", "a problem at 'payload/name', which does not point into an asset"),
        ("pointer-alone", "a problem at '/payload/name', which does not point into an asset"),
        ("long-pointer", "a pointer of 1,001 characters"),
        ("long", "a text of 8,001 characters"),
        ("many", "1,001 problems; 1,000 are allowed"),
    ],
)
def test_a_validator_without_a_sound_answer_names_the_problem(fault: str, problem: str) -> None:
    error = asked(new(site()), fault=fault, PASSWORD="hunter22")
    assert isinstance(error, TransientError)  # asked again: a plugin that is replaced answers better
    assert error.code or fault == "transient"
    assert problem in str(error)
    assert "hunter22" not in str(error)


@pytest.mark.parametrize("fault", ["unknown-severity", "unset-severity"])
def test_a_severity_that_is_not_known_is_an_error(fault: str) -> None:
    answer = asked(new(site()), fault=fault)
    assert not isinstance(answer, LehrError)
    assert [item.severity for item in answer] == [Severity.ERROR]


def test_texts_are_one_line_and_printable() -> None:
    answer = asked(new(site()), fault="lines")
    assert not isinstance(answer, LehrError)
    ((finding),) = answer
    assert (finding.what, finding.fix) == ("it | is [31m wrong", "fix | it")
    assert finding.why.isprintable()


def test_secrets_that_the_plugin_was_given_are_hidden() -> None:
    async def main(fault: str) -> Answer:
        from lehr.sdk.secrets import SecretValue

        opened = connection("validator_plugin.py", [], {"PASSWORD": "hunter22"}, arguments=[fault])
        try:
            await opened.describe()
            opened.hide([SecretValue(b"hunter22")])
            return await answer_of(opened, new(site()))
        finally:
            await opened.close()

    (finding,) = asyncio.run(main("lines"))  # type: ignore[misc]
    assert "hunter22" not in str(finding)
    assert finding.why.endswith("is wrong")
    error = asyncio.run(main("trouble"))
    assert isinstance(error, StalledError)  # a kind that is not known
    assert error.code == "X1"
    assert "is | wrong" in error.what
    assert "hunter22" not in str(error)


@pytest.mark.parametrize("fault", ["hangs", "blocks"])
def test_a_validator_that_hangs_is_given_up_in_time(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_validator, "_SECONDS", 0.5)
    error = asked(new(site()), fault=fault)
    assert isinstance(error, TransientError)
    assert "has not answered Validate in time" in error.what
    assert error.code == "PLG123"


def test_all_rounds_of_a_part_share_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_validator, "_SECONDS", 1.0)
    started = time.monotonic()
    error = asked(new(site()), fault="slow")
    assert isinstance(error, TransientError)
    assert error.code in ("PLG123", "PLG160")
    assert time.monotonic() - started < 10.0


def test_all_parts_of_a_change_share_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_validator, "_MOST_SECONDS", 0.0)
    error = asked(new(site()))
    assert isinstance(error, TransientError)
    assert error.code == "PLG160"


def test_a_bug_of_a_validator_is_named() -> None:
    error = asked(new(site()), name="broken")
    assert isinstance(error, StalledError)
    assert error.code == "PLG162"
    error = asked(new(site(name=7)))
    assert isinstance(error, TransientError)
    assert error.code == "PLG145"
    assert "AttributeError" in error.what


def test_the_next_change_is_judged_after_a_crash(tmp_path: Path) -> None:
    async def main() -> tuple[Answer, Answer]:
        environment = {"MARK": str(tmp_path / "mark")}
        opened = connection("validator_plugin.py", [], environment, arguments=["dies-once"])
        try:
            first = await answer_of(opened, new(site()))
            for _ in range(100):
                second = await answer_of(opened, new(site(name="Web")))
                if not isinstance(second, LehrError):
                    break
                await asyncio.sleep(0.1)
            return first, second
        finally:
            await opened.close()

    first, second = asyncio.run(main())
    assert isinstance(first, TransientError)
    assert found(second) == [("N001", "web", "/payload/name")]


def test_many_changes_are_divided_over_several_calls() -> None:
    """Each of the 30 assets has 300 kB; a call has up to 2 MiB of changes."""
    assets = [site(f"s{number:02}", text="x" * 300_000) for number in range(30)]
    answer = asked(new(*assets), name="counting")
    assert [code for code, _asset, _pointer in found(answer)] == ["C6"] * 5
    bad = [site(f"s{number:02}", name="S", text="x" * 300_000) for number in range(30)]
    assert [asset for _code, asset, _pointer in found(asked(new(*bad)))] == [item.id for item in bad]


def test_after_more_errors_than_anybody_reads_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_validator, "_MOST_FINDINGS", 10)
    bad = [site(f"s{number:02}", name="S", text="x" * 300_000) for number in range(30)]
    assert len(found(asked(new(*bad)))) == 12


@pytest.mark.parametrize("size", [3_000_000, 5_000_000])
def test_a_change_that_fits_into_no_message_is_refused(size: int) -> None:
    """One of 3 MB fits; two of them, before and after, or one of 5 MB, do not."""
    large = site("web", text="x" * size)
    if size == 3_000_000:
        assert asked(new(large)) == []
    answer = asked([AssetChange(large.id, site("web", text="y" * 3_000_000), large)])
    assert isinstance(answer, StalledError)
    assert answer.code == "PLG161"
    assert "cannot be asked about web" in answer.what


def test_what_is_asked_for_may_be_too_much() -> None:
    hosts = [make_asset(AssetId(f"h{number}"), "shop.Host", "x" * 1_000_000, {}) for number in range(5)]
    sites = [site(f"s{number}", host=f"h{number}") for number in range(5)]
    answer = asked(new(*sites), *hosts, name="hosts")
    assert isinstance(answer, StalledError)
    assert answer.code == "PLG161"


def test_it_judges_the_types_that_the_deployment_selects() -> None:
    async def nobody() -> Any:
        raise AssertionError("no plugin is asked")

    validator = RemoteValidator("naming", nobody, SystemClock(), ["shop.Site"])  # type: ignore[arg-type]
    assert [validator.concerns(change) for change in new(site(), host("h1"))] == [True, False]
    assert validator.concerns(AssetChange(AssetId("web"), site(), None))
    assert validator.concerns(AssetChange(AssetId("web"), site(), host("web")))
    assert validator.concerns(AssetChange(AssetId("web"), host("web"), site()))


def file_of_plugins(folder: Path, text: str) -> Deployment:
    (folder / "plugins.yaml").write_text(text)
    return Deployment(location=".", state=folder / "state", base=folder, plugins=folder / "plugins.yaml")


def test_the_file_of_plugins_adds_validators(tmp_path: Path) -> None:
    served = "[naming, {name: hosts, types: [shop.Site, shop.Host], when_down: warn}]"
    deployment = file_of_plugins(tmp_path, f"plugins: {{a: {{validators: {served}, address: 'unix:/x'}}}}")
    naming, hosts = remote_validators(plugins(deployment))
    assert (naming.name, naming.when_down) == ("naming", WhenDown.REFUSE)
    assert (hosts.name, hosts.when_down) == ("hosts", WhenDown.WARN)
    other = new(make_asset(AssetId("x"), "shop.Other", {}, {}))[0]
    assert naming.concerns(other)
    assert not hosts.concerns(other)


@pytest.mark.parametrize(
    ("served", "problem"),
    [
        ("[a/b]", "'a/b' is not the name of a validator"),
        ("[{name: A}]", "'A' is not the name of a validator"),
        ("[a, {name: a}]", "the validator a is served more than once"),
        ("[{types: [x.Y]}]", "name"),
        ("[{name: a, when_down: maybe}]", "maybe"),
        ("[{name: a, type: x.Y}]", "type"),
    ],
)
def test_validators_in_the_file_are_checked(tmp_path: Path, served: str, problem: str) -> None:
    deployment = file_of_plugins(tmp_path, f"plugins: {{a: {{validators: {served}, command: [x]}}}}")
    assert deployment.plugins is not None
    with pytest.raises(StalledError) as caught:
        read_plugins(deployment.plugins)
    assert problem in caught.value.why


def test_a_validator_and_a_check_may_have_the_same_name(tmp_path: Path) -> None:
    deployment = file_of_plugins(tmp_path, "plugins: {a: {validators: [a], checks: [a], command: [x]}}")
    assert len(remote_validators(remote_plugins(deployment, ()))) == 1


def test_a_plugin_that_lacks_a_validator_is_refused(tmp_path: Path) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, str(HERE / "validator_plugin.py")]
    definition = {"validators": ["nightly"], "command": command, "environment": {"PYTHONPATH": paths}}
    deployment = file_of_plugins(tmp_path, json.dumps({"plugins": {"a": definition}}))
    (plugin,) = remote_plugins(deployment, ())

    async def story() -> Answer:
        try:
            return await plugin.validators[0].ask(proposal(new(site())), Inline())
        finally:
            await plugin.close()

    error = asyncio.run(story())
    assert isinstance(error, StalledError)
    assert error.code == "WIR124"
    assert "the plugin a does not serve the validator nightly" in error.what
