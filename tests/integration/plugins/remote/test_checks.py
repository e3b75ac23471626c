"""Checks of a plugin in another process: they keep the contract, and whatever goes wrong waits."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import NeedError, StalledError
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Verdict
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.plugins.remote import check as remote_check
from lehr.plugins.remote.check import RemoteCheck
from lehr.plugins.remote.connection import Connection
from lehr.testing.checks import FixedCheckReader, check_request
from lehr.testing.conformance.check_plugin import RULES, Rule, Subject
from lehr.wiring.deployment import Deployment
from lehr.wiring.installed import checks, plugins
from lehr.wiring.remote_plugins import read_plugins, remote_checks, remote_plugins
from tests.integration.plugins.remote.managed import HERE, connection
from tests.unit.checks.test_check_conformance import REGISTRY, SUBJECTS

WEB = make_asset(AssetId("web"), "lehr.File", None, {})


def on_call(*people: str) -> Asset:
    return make_asset(AssetId("rota"), "example.OnCall", {"people": list(people)}, {})


def run(story: Callable[[Connection], Awaitable[Any]], *arguments: str, **environment: str) -> Any:
    async def main() -> Any:
        opened = connection("check_plugin.py", [], environment, arguments=arguments)
        try:
            return await story(opened)
        finally:
            await opened.close()

    return asyncio.run(main())


def asked(reader: FixedCheckReader, *arguments: str, **environment: str) -> list[Verdict]:
    """The verdicts about a push of `WEB`."""

    async def story(opened: Connection) -> list[Verdict]:
        return await RemoteCheck("on-call", opened, SystemClock()).check(check_request(WEB), reader)

    return run(story, *arguments, **environment)  # type: ignore[no-any-return]


def reader(*governing: Asset, **seen: Any) -> FixedCheckReader:
    return FixedCheckReader(REGISTRY, governing=governing, **seen)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_shipped_check_keeps_the_contract_over_the_wire(rule: Rule) -> None:
    async def story(opened: Connection) -> None:
        for parameters in SUBJECTS:
            (subject,) = parameters.values
            await rule(elsewhere(subject, opened))

    run(story)


def elsewhere(subject: Any, opened: Connection) -> Subject:
    """`subject`, with the check of the other process."""
    name, clock = subject.make().name, SystemClock()
    return Subject(
        lambda: RemoteCheck(name, opened, clock),
        subject.request,
        subject.reader,
        subject.allows,
        subject.governed,
    )


def test_its_verdicts_are_those_of_the_same_check_here() -> None:
    async def story(opened: Connection) -> None:
        for parameters in SUBJECTS:
            (subject,) = parameters.values
            there = await elsewhere(subject, opened).verdicts()
            assert there == await subject.verdicts()

    run(story)


def test_a_check_of_its_own_allows_waits_and_does_not_apply() -> None:
    assert asked(reader()) == []
    assert asked(reader(on_call("mira"))) == [Verdict("on-call", allow=True)]
    (verdict,) = asked(reader(on_call()))
    assert (verdict.allow, verdict.reason) == (False, "NobodyOnCall")


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("dies", "exit code 3: out of paper (PLG126)"),
        ("status", "status INTERNAL (PLG124)"),
        ("huge", "status RESOURCE_EXHAUSTED (PLG124)"),
        ("other-answer", "nonsense: an answer to another request (PLG132)"),
        ("no-result", "nonsense: an answer without a result (PLG132)"),
        ("asks-for-ever", "it has asked for more 100 times (PLG132)"),
        ("asks-again", "it asks for nothing, or only for what it has (PLG132)"),
        ("asks-nothing", "it asks for nothing, or only for what it has (PLG132)"),
        ("asks-much", "it has asked more than 2,000 questions (PLG132)"),
        ("asks-unknown", "a question that is not known (PLG132)"),
        ("asks-garbage", "a question about production that cannot be read"),
        ("other-check", "a verdict of 'freeze', not of on-call (PLG132)"),
        ("prefix-check", "a verdict of 'on-call-too', not of on-call (PLG132)"),
        ("same-limit", "two verdicts about the same limit (PLG132)"),
        ("many", "1,001 verdicts (PLG132)"),
        ("no-word", "the reason 'no words' (PLG132)"),
        ("allowed-waits", "the reason 'Allowed' (PLG132)"),
        ("until-past", "a verdict until 1.0, which is not later than now (PLG132)"),
        ("until-never", "a verdict until inf"),
        ("until-nan", "a verdict until nan"),
        ("waits-for-itself", "a verdict that waits for the asset 'web' (PLG132)"),
        ("waits-for-garbage", "a verdict that waits for the asset 'no id' (PLG132)"),
        ("no-limit", "a reservation without a key or a limit (PLG132)"),
        ("no-key", "a reservation without a key or a limit (PLG132)"),
        ("no-window", "a reservation with the window 0.0 (PLG132)"),
        ("no-override", "a verdict that is overridden by nothing (PLG132)"),
        ("no-reading", "a reading that cannot be read"),
        ("long", "a text of 8,001 characters (PLG132)"),
    ],
)
def test_a_check_without_a_sound_answer_waits_and_names_the_problem(fault: str, problem: str) -> None:
    (verdict,) = asked(reader(on_call("mira")), fault, PASSWORD="hunter22")
    assert (verdict.check, verdict.allow, verdict.reason) == ("on-call", False, Reason.CHECK_FAILED)
    assert problem in verdict.message
    assert verdict.unblock
    assert verdict.until == check_request(WEB).now + 10.0
    assert "hunter22" not in str(verdict)
    assert len(msgspec.json.encode(verdict)) < 2_000


@pytest.mark.parametrize("fault", ["unknown-decision", "unset-decision", "silent"])
def test_a_verdict_that_does_not_clearly_allow_waits(fault: str) -> None:
    (verdict,) = asked(reader(), fault)
    assert not verdict.allow
    assert verdict.reservations == ()
    assert verdict.message
    assert verdict.unblock
    assert verdict.reason != Reason.ALLOWED


def test_a_check_that_hangs_waits_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_check, "_SECONDS", 0.5)
    (verdict,) = asked(reader(), "hangs")
    assert "has not answered Check in time (PLG123)" in verdict.message
    assert not verdict.allow


def test_all_rounds_of_a_check_share_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_check, "_SECONDS", 1.0)
    started = time.monotonic()
    (verdict,) = asked(reader(), "slow")
    assert "in time" in verdict.message
    assert time.monotonic() - started < 10.0


def test_trouble_is_shown_without_secrets() -> None:
    async def story(opened: Connection) -> list[Verdict]:
        from lehr.sdk.secrets import SecretValue

        await opened.describe()
        opened.hide([SecretValue(b"hunter22")])
        clock = SystemClock()
        return await RemoteCheck("on-call", opened, clock).check(check_request(WEB), reader())

    (verdict,) = run(story, "trouble", PASSWORD="hunter22")
    assert "is wrong (X1)" in verdict.message
    assert verdict.unblock == "change it"
    assert "hunter22" not in str(verdict)
    (verdict,) = run(story, "tells-secret", PASSWORD="hunter22")
    assert "is wrong" in verdict.message
    assert "hunter22" not in str(verdict)


class Forgetful(FixedCheckReader):
    """Has to fetch each asset first; a plugin may ask for others without end."""

    fetched: set[AssetId]

    def asset(self, id: AssetId) -> Asset | None:
        if id not in self.fetched:
            self.fetched.add(id)
            raise NeedError("it has to be fetched")
        return super().asset(id)


def test_questions_are_bounded_although_each_is_fetched_first() -> None:
    read = Forgetful(REGISTRY)
    read.fetched = set()

    async def story(opened: Connection) -> list[Verdict]:
        check = RemoteCheck("on-call", opened, SystemClock())
        for _ in range(200):
            try:
                return await check.check(check_request(WEB), read)
            except NeedError:
                continue
        raise AssertionError("it asks without end")

    (verdict,) = run(story, "asks-for-ever")
    assert "100 times" in verdict.message


@pytest.mark.parametrize(
    ("selected", "kind", "counts"),
    [
        ("web", ControlKind.OVERRIDE, True),
        ("other", ControlKind.OVERRIDE, False),
        ("web", ControlKind.FREEZE, False),
    ],
)
def test_only_an_override_that_selects_the_asset_counts(
    selected: str, kind: ControlKind, counts: bool
) -> None:
    control = Control(
        id="c1",
        kind=kind,
        partition=Partition("test"),
        selector=Selector(ids=(selected,)),
        reason="r",
        actor="mira",
        at=0.0,
    )
    (verdict,) = asked(reader(controls=[control]), "takes-override")
    assert verdict.allow == counts
    assert verdict.overridden == ("c1" if counts else None)


def test_the_next_push_is_judged_after_a_crash() -> None:
    async def story(opened: Connection) -> list[Verdict]:
        clock = SystemClock()
        check = RemoteCheck("on-call", opened, clock)
        await check.check(check_request(WEB), reader())
        process = opened.process
        assert process is not None
        await process.stop()
        found: list[Verdict] = []
        for _ in range(100):
            found = await check.check(check_request(WEB), reader(on_call("mira")))
            if found[0].allow:
                break
            await asyncio.sleep(0.1)
        return found

    assert run(story) == [Verdict("on-call", allow=True)]


def file_of_plugins(folder: Path, text: str) -> Deployment:
    (folder / "plugins.yaml").write_text(text)
    return Deployment(location=".", state=folder / "state", base=folder, plugins=folder / "plugins.yaml")


def test_the_file_of_plugins_adds_checks(tmp_path: Path) -> None:
    deployment = file_of_plugins(tmp_path, "plugins: {a: {checks: [on-call], address: 'unix:/nowhere'}}")
    found = checks(plugins(deployment))
    assert [check.name for check in found] == [*(check.name for check in checks()), "on-call"]


def test_a_plugin_cannot_take_over_a_check(tmp_path: Path) -> None:
    name = checks()[0].name
    deployment = file_of_plugins(tmp_path, f"plugins: {{a: {{checks: [{name}], address: 'unix:/nowhere'}}}}")
    with pytest.raises(StalledError, match=f"cannot answer the check {name}"):
        remote_checks(remote_plugins(deployment, ()), checks())


def test_a_plugin_that_lacks_a_check_is_refused(tmp_path: Path) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, str(HERE / "check_plugin.py")]
    definition = {"checks": ["nightly"], "command": command, "environment": {"PYTHONPATH": paths}}
    deployment = file_of_plugins(tmp_path, json.dumps({"plugins": {"a": definition}}))
    (plugin,) = remote_plugins(deployment, ())

    async def story() -> list[Verdict]:
        try:
            return await plugin.checks["nightly"].check(check_request(WEB), reader())
        finally:
            await plugin.close()

    (verdict,) = asyncio.run(story())
    assert not verdict.allow
    assert "the plugin a does not serve the check nightly" in verdict.message
    assert "(WIR124)" in verdict.message


def test_names_of_checks_are_checked(tmp_path: Path) -> None:
    deployment = file_of_plugins(tmp_path, "plugins: {a: {checks: [a/b], command: [x]}}")
    assert deployment.plugins is not None
    with pytest.raises(StalledError) as caught:
        read_plugins(deployment.plugins)
    assert "'a/b' is not the name of a check" in caught.value.why


def test_a_check_cannot_be_governed_by_a_type_that_does_not_govern() -> None:
    """It would find no asset of it, and let everything go."""

    async def story(opened: Connection) -> list[Verdict]:
        check = RemoteCheck("on-call", opened, SystemClock(), lambda type: type != "example.OnCall")
        return await check.check(check_request(WEB), reader(on_call()))

    (verdict,) = run(story)
    assert not verdict.allow
    assert "governing assets of type 'example.OnCall'" in verdict.message
    assert "(PLG154)" in verdict.message


def test_those_of_a_file_know_which_types_govern(tmp_path: Path) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, str(HERE / "check_plugin.py")]
    definition = {"checks": ["on-call"], "command": command, "environment": {"PYTHONPATH": paths}}
    deployment = file_of_plugins(tmp_path, json.dumps({"plugins": {"a": definition}}))
    (plugin,) = remote_plugins(deployment, ())

    async def story() -> list[Verdict]:
        try:
            return await plugin.checks["on-call"].check(check_request(WEB), reader(on_call("mira")))
        finally:
            await plugin.close()

    (verdict,) = asyncio.run(story())
    assert "(PLG154)" in verdict.message
