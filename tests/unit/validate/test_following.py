"""What follows an asset that is turned down keeps its reference until that is removed."""

from __future__ import annotations

import pytest

from lehr.model.asset import Asset
from tests.unit.validate.proposing import check, job, missing

VHOST = job("vhost")
LEAVING = job("vhost", addons=["Turndown"])
FOLLOWING = job("nginx", restart_on=["vhost"])
ALONE = job("nginx")


@pytest.mark.parametrize("before", [VHOST, LEAVING])
def test_who_stops_following_what_is_turned_down_is_told_to_wait_for_its_removal(before: Asset) -> None:
    [found] = [item for item in check([before, FOLLOWING], [LEAVING, ALONE]) if item.code == "VAL007"]
    assert found.subject == "nginx"
    assert found.at is not None
    assert found.at.file == "assets/nginx.yaml"
    assert not missing(found, "`vhost`")


def test_both_may_go_together_and_nothing_holds_what_stays_or_goes_as_well() -> None:
    for before, after in (
        ([LEAVING, FOLLOWING], [ALONE]),
        ([VHOST, FOLLOWING], [VHOST, ALONE]),
        ([VHOST, FOLLOWING], [LEAVING, FOLLOWING]),
        ([VHOST, FOLLOWING], [LEAVING, job("nginx", addons=["Turndown"])]),
        ([VHOST, ALONE], [LEAVING, ALONE]),
    ):
        assert "VAL007" not in [item.code for item in check(before, after)]
