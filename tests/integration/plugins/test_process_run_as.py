# ruff: noqa: F401, F811  (fixtures)
"""Programs run with the user, umask, limits, environment and stop signal that intent declares."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.errors import StalledError
from lehr.model.asset import Asset
from lehr.model.operation import Result
from lehr.plugins.process import procfs
from lehr.plugins.process.payload import Limits, Process
from lehr.plugins.process.render import render
from lehr.plugins.process.runnable import Rights, check_rights
from tests.integration.plugins.test_process_plugin import Site, program, site, state, until

STATUS = Path("/proc/self/status").read_text().splitlines()

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: no program runs here as another user")

# Writes what it runs with to the file in its first argument, then waits; SIGINT ends it with 0.
PROBE = r"""
import json, os, resource, signal, sys
umask = os.umask(0)
os.umask(umask)
def ended(number, _):
    with open(sys.argv[1] + ".signal", "w") as file:
        file.write(signal.Signals(number).name)
    sys.exit(0)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, ended)
found = {
    "umask": oct(umask),
    "nofile": resource.getrlimit(resource.RLIMIT_NOFILE), "core": resource.getrlimit(resource.RLIMIT_CORE),
    "environment": {name: value for name, value in os.environ.items() if not name.startswith("LEHR_")},
}
with open(sys.argv[1] + ".new", "w") as file:
    json.dump(found, file)
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    signal.pause()
"""


def probe(tmp_path: Path, **fields: Any) -> Asset:
    fields = {"directory": str(tmp_path), "stop_timeout_seconds": 5, **fields}
    return program(sys.executable, "-I", "-S", "-c", PROBE, str(tmp_path / "found"), **fields)


def found(site: Site, tmp_path: Path, asset: Asset) -> dict[str, Any]:
    """What the program of `asset` runs with, once it does."""
    site.apply(asset)
    until((tmp_path / "found").exists)
    value = json.loads((tmp_path / "found").read_text())
    (tmp_path / "found").unlink()
    assert isinstance(value, dict)
    return value


def identified(site: Site, **fields: Any) -> list[str]:
    """Uid, gid, groups, USER, LOGNAME and HOME of a shell."""
    script = 'echo "$(id -u)|$(id -g)|$(id -G)|$USER|$LOGNAME|$HOME" >/dev/stdout; exec sleep 600'
    site.apply(program("sh", "-c", script, directory="/", **fields))
    [log] = site.root.glob("*/assets/*/0.stdout.log")
    return log.read_text().splitlines()[-1].split("|")


@root_only
def test_a_program_runs_as_its_user_with_its_groups_and_home(site: Site) -> None:
    nobody = pwd.getpwnam("nobody")
    numbers = [str(number) for number in (nobody.pw_uid, nobody.pw_gid, nobody.pw_gid)]
    assert identified(site, user="nobody") == [*numbers, "nobody", "nobody", nobody.pw_dir]
    assert identified(site, user="nobody", environment={"HOME": "/srv"})[-1] == "/srv"


@root_only
def test_a_group_may_differ_from_that_of_the_user(site: Site) -> None:
    assert identified(site, user="nobody", user_group="12345")[1] == "12345"


def test_limits_and_umask_hold_in_the_program(site: Site, tmp_path: Path) -> None:
    seen = found(site, tmp_path, probe(tmp_path, umask="027", limits=Limits(nofile=256, core=0)))
    assert seen["umask"] == "0o27"
    assert seen["nofile"] == [256, 256]
    assert seen["core"] == [0, 0]


@root_only
@pytest.mark.parametrize("limits", [{"nofile": 3}, {"address_space": 1_000_000}], ids=["files", "memory"])
def test_a_limit_that_is_too_low_is_a_failure_of_the_program(site: Site, limits: dict[str, int]) -> None:
    """The launcher needs files and memory itself, to look the user up."""
    message = site.push(program("sleep", "600", user="nobody", limits=Limits(**limits))).message
    assert "replica 0 ended" in message
    assert "lehr:" not in message
    assert "Traceback" not in message
    assert "MemoryError" not in message


def test_an_environment_file_is_read_at_each_start_and_declared_variables_override_it(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "env").write_text("A=file\nB=file\nLANG=file\n")
    asset = probe(tmp_path, environment={"B": "declared"}, environment_file="env")
    environment = found(site, tmp_path, asset)["environment"]
    assert [environment[name] for name in ("A", "B", "LANG")] == ["file", "declared", "file"]
    (tmp_path / "env").write_text("A=new\n")
    assert site.diff(asset).empty, "it is not content"
    kill_and_wait(site, tmp_path)
    assert json.loads((tmp_path / "found").read_text())["environment"]["A"] == "new"


def kill_and_wait(site: Site, tmp_path: Path) -> None:
    process = procfs.identify(site.pids()[0])
    assert process is not None
    procfs.send(process, signal.SIGKILL)
    until((tmp_path / "found").exists)


def test_a_program_is_stopped_with_its_signal(site: Site, tmp_path: Path) -> None:
    found(site, tmp_path, probe(tmp_path, stop_signal="SIGINT"))
    site.apply(probe(tmp_path, stop_signal="SIGINT", replicas=0))
    assert (tmp_path / "found.signal").read_text() == "SIGINT"


def test_what_a_supervisord_left_behind_is_stopped_with_the_signal_too(site: Site, tmp_path: Path) -> None:
    found(site, tmp_path, probe(tmp_path, stop_signal="SIGINT"))
    [supervisord] = site.supervisords()
    procfs.send(supervisord, signal.SIGKILL)
    until(lambda: not procfs.alive(supervisord))
    site.apply(probe(tmp_path, stop_signal="SIGINT", replicas=0))
    assert (tmp_path / "found.signal").read_text() == "SIGINT"


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"user": "no-such-user"}, "user no-such-user does not exist"),
        ({"user_group": "no-such-group"}, "group no-such-group does not exist"),
        ({"environment_file": "no-such-file"}, "no-such-file cannot be read"),
        ({"environment_file": "found"}, "found is invalid"),
    ],
)
def test_what_cannot_start_stalls_before_anything_is_stopped(
    site: Site, tmp_path: Path, fields: dict[str, Any], complaint: str
) -> None:
    site.apply(probe(tmp_path))
    before = site.pids()
    (tmp_path / "found").write_text("not a variable")
    outcome = site.push(probe(tmp_path, **fields))
    assert outcome.result is Result.STALLED
    assert complaint in outcome.message
    assert site.pids() == before


NO_RIGHTS = Rights(user=False, limits=False)


def refused(*, as_uid: int | None = None, **fields: Any) -> StalledError:
    """How a Lehr without rights, that runs as `as_uid`, refuses to start a replica."""
    run_as = render(msgspec.convert({"command": ["true"], **fields}, Process), "shop", "/", ())[0].run_as
    with pytest.MonkeyPatch.context() as patch:
        if as_uid is not None:
            patch.setattr(os, "geteuid", lambda: as_uid)
        with pytest.raises(StalledError) as caught:
            check_rights(run_as, NO_RIGHTS)
    return caught.value


def test_another_user_needs_root_and_says_so() -> None:
    error = refused(user="daemon", as_uid=os.geteuid() or 54_321)
    assert error.code == "PRO136"
    assert str(error).startswith("`user` daemon needs a Lehr that runs as root: it runs with uid ")


@pytest.mark.parametrize("wanted", [300, "unlimited"])
def test_a_limit_above_its_own_needs_a_capability_and_says_so(wanted: object) -> None:
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_CORE, (200, 200))
from tests.integration.plugins.test_process_run_as import refused
print(refused(limits={{"core": {wanted!r}}}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"limits.core of {wanted} needs a Lehr that runs as root with CAP_SYS_RESOURCE: its own hard limit "
        "is 200, which it may not raise (give Lehr that capability, or declare at most 200)\n"
    )


@root_only
@pytest.mark.parametrize(
    ("dropped", "rights"),
    [
        ("-sys_resource", "Rights(user=True, limits=False)"),
        ("-setuid", "Rights(user=False, limits=True)"),
        ("-setgid,-sys_resource", "Rights(user=False, limits=False)"),
    ],
)
def test_root_in_a_container_may_lack_rights(dropped: str, rights: str) -> None:
    script = "from lehr.plugins.process.runnable import own_rights; print(own_rights())"
    capabilities = int(next(line for line in STATUS if line.startswith("CapBnd")).split()[1], 16)
    if not capabilities >> 24 & 1:
        rights = rights.replace("limits=True", "limits=False")  # here it lacks this one in any case
    command = ["setpriv", f"--bounding-set={dropped}", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == rights


@root_only
def test_a_user_without_capabilities_has_no_rights() -> None:
    script = (
        # Imported first: the other user may not be allowed to read where this Python is.
        "import os; from lehr.plugins.process.runnable import own_rights; os.setuid(1); print(own_rights())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Rights(user=False, limits=False)"
