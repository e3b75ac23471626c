"""Commands that are supposed: as they are written, as they are typed, and what they change."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.dry_run.suppositions import Supposition, Verb, controls_under, lifts_over, parse
from lehr.model.asset import AssetId, AssetKey, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.selector import parse_selector

SHOP = Partition("shop")
PAGE = make_asset(AssetId("web/page"), "lehr.File", {}, {})


def control(kind: ControlKind, selector: str, **fields: Any) -> Control:
    return Control(
        id=f"{kind} {selector}",
        kind=kind,
        partition=SHOP,
        selector=parse_selector(selector),
        reason="because",
        actor="ana",
        at=1.0,
        **fields,
    )


FREEZE, OTHER = control(ControlKind.FREEZE, "web/*"), control(ControlKind.FREEZE, "db/*")
ALL, PAUSE = control(ControlKind.FREEZE, "all"), control(ControlKind.PAUSE, "type=lehr.File")
PIN = control(ControlKind.PIN, "web/page", incarnation=1)
CONTROLS = [FREEZE, OTHER, PAUSE, ALL, PIN]


def parsed(text: str) -> list[Supposition]:
    return parse(text, PAGE, CONTROLS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unfreeze web/*", [Supposition(Verb.UNFREEZE, "web/*")]),
        ("lehr unfreeze all", [Supposition(Verb.UNFREEZE, "all")]),
        ("unfreeze", [Supposition(Verb.UNFREEZE, "id=web/*"), Supposition(Verb.UNFREEZE, "all")]),
        ("resume", [Supposition(Verb.RESUME, "type=lehr.File")]),
        ("unpin web/page", [Supposition(Verb.UNPIN, "web/page")]),
        ("retry", [Supposition(Verb.RETRY)]),
        ("retry 'web/page'", [Supposition(Verb.RETRY)]),
        ("approve web/page --reason 'seen by me' --diff ab12 --yes", [Supposition(Verb.APPROVE)]),
        ("override --check hours", [Supposition(Verb.OVERRIDE, "hours")]),
        ("override web/page --check=hours --for 2h", [Supposition(Verb.OVERRIDE, "hours")]),
        ("override hours", [Supposition(Verb.OVERRIDE, "hours")]),
        ("rollout release web/page", [Supposition(Verb.RELEASE)]),
        ("release", [Supposition(Verb.RELEASE)]),
        ("promote waves", [Supposition(Verb.PROMOTE, "waves")]),
        ("rollout promote", [Supposition(Verb.PROMOTE)]),
        ("rollout resume waves", [Supposition(Verb.RESUME_ROLLOUT, "waves")]),
        ("rollout retry waves --reason fixed", [Supposition(Verb.RETRY_ROLLOUT, "waves")]),
    ],
)
def test_a_command_is_written_as_it_is_typed(text: str, expected: list[Supposition]) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lehr",
        "freeze all",
        "pin web/page",
        "rollout",
        "rollout abort",
        "override",
        "override --check",
        "retry one two",
        "retry --check hours",
        "approve 'web",
        "\x1b[31m",
        "unfreeze --check hours",
    ],
)
def test_what_is_not_such_a_command_is_refused(text: str) -> None:
    with pytest.raises(LehrError) as raised:
        parsed(text)
    assert raised.value.code == "DRY101"
    assert "unfreeze, resume, unpin, retry, approve" in raised.value.fix


def test_a_command_about_something_else_is_refused() -> None:
    with pytest.raises(LehrError) as raised:
        parsed("retry db/main")
    assert raised.value.code == "DRY102"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("unfreeze cache/*", "active ones are for: all, id=db/*, id=web/*"),
        ("resume web/page", "active ones are for: type=lehr.File"),
    ],
)
def test_a_control_that_is_not_active_cannot_be_lifted(text: str, why: str) -> None:
    with pytest.raises(LehrError) as raised:
        parsed(text)
    assert (raised.value.code, raised.value.why) == ("DRY103", why)


def test_without_any_control_nothing_can_be_lifted() -> None:
    with pytest.raises(LehrError) as raised:
        parse("unpin", PAGE, [])
    assert raised.value.why == "no pin is active"


@pytest.mark.parametrize("text", ["unfreeze type=", "retry label:"])
def test_a_selector_that_is_not_valid_is_refused(text: str) -> None:
    with pytest.raises(LehrError):
        parsed(text)


def test_every_control_over_the_asset_can_be_lifted_once() -> None:
    assert lifts_over(PAGE, [*CONTROLS, FREEZE, control(ControlKind.OVERRIDE, "all")]) == [
        Supposition(Verb.UNFREEZE, "id=web/*"),
        Supposition(Verb.RESUME, "type=lehr.File"),
        Supposition(Verb.UNFREEZE, "all"),
        Supposition(Verb.UNPIN, "id=web/page"),
    ]


def under(*suppositions: Supposition, approved: Digest | None = None) -> list[Control]:
    return controls_under(suppositions, AssetKey(SHOP, PAGE.id), CONTROLS, 5.0, approved)


def test_what_is_lifted_is_left_out() -> None:
    assert under() == CONTROLS
    assert under(Supposition(Verb.UNFREEZE, "id=web/*")) == [OTHER, PAUSE, ALL, PIN]
    assert under(Supposition(Verb.UNFREEZE, "all")) == [PAUSE, PIN]
    lifted = [item for item in lifts_over(PAGE, CONTROLS) if item.verb is not Verb.UNFREEZE]
    assert under(*lifted) == [FREEZE, OTHER, ALL]


def test_overrides_and_approvals_are_for_this_asset_alone() -> None:
    digest = Digest("d1")
    found = under(Supposition(Verb.OVERRIDE, "hours"), Supposition(Verb.OVERRIDE, "nights"), approved=digest)
    added = [item for item in found if item not in CONTROLS]
    assert [item.kind for item in added] == [ControlKind.OVERRIDE, ControlKind.OVERRIDE, ControlKind.APPROVAL]
    assert [item.check for item in added] == ["hours", "nights", None]
    assert added[-1].diff_digest == digest
    assert len({item.id for item in added}) == 3
    assert all(item.selector.ids == ("web/page",) for item in added)
    assert all(item.is_active(5.0) for item in added)


@pytest.mark.parametrize(
    ("supposition", "expected"),
    [
        (Supposition(Verb.UNFREEZE, "id=web/*"), "lehr unfreeze 'id=web/*'"),
        (Supposition(Verb.RETRY), "lehr retry 'web/a b'"),
        (Supposition(Verb.APPROVE), "lehr approve 'web/a b' --reason TEXT"),
        (Supposition(Verb.OVERRIDE, "hours"), "lehr override 'web/a b' --check hours --reason TEXT"),
        (Supposition(Verb.RELEASE), "lehr rollout release 'web/a b' --reason TEXT"),
        (Supposition(Verb.PROMOTE, "my waves"), "lehr rollout promote 'my waves' --reason TEXT"),
        (Supposition(Verb.PROMOTE), "lehr rollout promote --reason TEXT"),
        (Supposition(Verb.RESUME_ROLLOUT), "lehr rollout resume"),
        (Supposition(Verb.RETRY_ROLLOUT, "waves"), "lehr rollout retry waves --reason TEXT"),
    ],
)
def test_a_shell_takes_the_command_as_one(supposition: Supposition, expected: str) -> None:
    assert supposition.command(AssetId("web/a b")) == expected


@pytest.mark.parametrize("verb", list(Verb))
def test_what_is_typed_is_understood_again(verb: Verb) -> None:
    of = {"override": "hours", "unfreeze": "all", "resume": "type=lehr.File", "unpin": "id=web/page"}
    supposition = Supposition(verb, of.get(verb, ""))
    assert parsed(supposition.command(PAGE.id)) == [supposition]
