"""An asset names a file of the workspace that exists, lies inside and is not too large."""

from __future__ import annotations

import msgspec
import pytest

from lehr.base.diagnostics import Position
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.types import AssetType, Registry, TextProblem
from lehr.model.workspace_file import MOST_BYTES, MOST_TEXT_BYTES, WorkspaceFile, WorkspaceText
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor, validate


class Page(msgspec.Struct):
    source: WorkspaceFile


class Times(msgspec.Struct):
    source: WorkspaceText


def problems(times: Times) -> list[TextProblem]:
    text = times.source.text or ""
    return [TextProblem(times.source.file, 3, "it is bad", "correct it")] if "bad" in text else []


REGISTRY = Registry([AssetType("test.Page", Page), AssetType("test.Times", Times, text_problems=problems)])


def found(file: WorkspaceFile | WorkspaceText) -> list[tuple[str, str, str]]:
    def locate(asset: Asset, pointer: str) -> Position:
        assert pointer == "/payload/source"
        return Position("assets/a.yaml", 4, 3)

    payload = Page(file) if isinstance(file, WorkspaceFile) else Times(file)
    type = f"test.{payload.__class__.__name__}"
    asset = make_asset(AssetId("a"), type, payload, {}, Position("assets/a.yaml", 1, 1))
    changes = [AssetChange(asset.id, None, asset)]
    proposal = DeltaProposal(
        Partition("shop"), REGISTRY, Limits(), changes, MappingPredecessor({}, REGISTRY), locate
    )
    return [(item.code, str(item.at), item.why) for item in validate(proposal)]


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (WorkspaceFile("files/a"), "no such file"),
        (WorkspaceFile("files/a", "d", MOST_BYTES + 1), "10,000,001 bytes"),
        (WorkspaceFile("../a"), "out of the workspace"),
        (WorkspaceFile("files/../../a", "d", 1), "out of the workspace"),
        (WorkspaceFile("/etc/passwd"), "absolute"),
        (WorkspaceFile(""), "empty part"),
        (WorkspaceFile("./a"), "a part `.`"),
        (WorkspaceText("files/a"), "no such file"),
        (WorkspaceText("files/a", "d", MOST_TEXT_BYTES + 1), "65,537 bytes"),
        (WorkspaceText("files/a", "d", 1), "UTF-8"),
        (WorkspaceText("../a"), "out of the workspace"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_place_and_reason(
    file: WorkspaceFile | WorkspaceText, why: str
) -> None:
    [(code, at, reason)] = found(file)
    assert (code, at) == ("VAL043", "assets/a.yaml:4:3")
    assert why in reason


@pytest.mark.parametrize("size", [0, MOST_BYTES])
def test_a_file_up_to_the_limit_is_fine(size: int) -> None:
    assert found(WorkspaceFile("files/a..b", "d", size)) == []


def test_a_problem_in_a_text_file_is_reported_with_its_place_in_that_file() -> None:
    assert found(WorkspaceText("files/a", "d", 4, "good")) == []
    [(code, at, why)] = found(WorkspaceText("files/a", "d", 3, "bad"))
    assert (code, at) == ("VAL044", "files/a:3:1")
    assert "`a`" in why
