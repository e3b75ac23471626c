"""A server makes dry runs of the partition whose production its machine has, and of no other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lehr.base.errors import LehrError
from lehr.control.state_folder import write_record
from lehr.model.asset import Partition
from lehr.wiring.deployment import Deployment
from lehr.wiring.dry_runs import DryRunsHere, recorded_deployment

SHOP = Partition("shop")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    write_record(tmp_path / "state", tmp_path / "workspace", SHOP)
    return tmp_path / "workspace"


@pytest.fixture
def state(workspace: Path) -> Path:
    return workspace.parent / "state"


def refuses(here: DryRunsHere, partition: Partition) -> bool:
    try:
        here.require(partition)
    except LehrError as error:
        return error.code == "WIR110"
    return False


def test_the_partition_of_the_recorded_workspace_is_compared_from_there(state: Path, workspace: Path) -> None:
    assert not refuses(DryRunsHere(state, None, None), SHOP)
    found = recorded_deployment(state, Path("metrics.yaml"))
    assert found is not None
    assert (found.base, found.state, found.metrics) == (workspace, state, Path("metrics.yaml"))


def test_another_partition_of_the_same_store_is_refused(state: Path) -> None:
    assert refuses(DryRunsHere(state, None, None), Partition("depot"))


def test_a_workspace_that_is_gone_is_refused(state: Path, workspace: Path) -> None:
    shutil.rmtree(workspace)
    assert refuses(DryRunsHere(state, None, None), SHOP)


def test_a_state_that_no_run_has_used_is_refused(tmp_path: Path) -> None:
    assert refuses(DryRunsHere(tmp_path, None, None), SHOP)


def test_a_run_in_this_process_compares_as_it_was_started(state: Path, workspace: Path) -> None:
    running = Deployment(location="git@example.org:intent", state=state, base=workspace)
    here = DryRunsHere(state, None, running)
    shutil.rmtree(workspace)
    assert not refuses(here, SHOP)
    assert refuses(here, Partition("depot"))
