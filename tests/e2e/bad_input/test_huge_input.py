"""Given a workspace in force, when something huge turns up, then it is refused unread, in bounded memory."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, until

GIGABYTE = 1 << 30
BLOB = 240_000_000
"""Bytes of a file in git: a gigabyte takes half a minute to commit."""


def bounded() -> Sequence[str]:
    """What to start a program with so that it cannot have as much memory as the file has bytes."""
    if shutil.which("prlimit") is None:
        pytest.skip("prlimit (util-linux) is needed")
    return ("prlimit", "--data=200000000")


def test_a_gigabyte_in_a_directory_is_named_and_what_is_in_force_is_looked_after(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    motd = workspace.declare_file("motd", "one\n")
    big = workspace.repository / "assets" / "big.yaml"
    with workspace.run("--poll", "1s", prefix=bounded()) as running:
        running.says("production is as intended")
        with big.open("wb") as file:
            file.truncate(GIGABYTE)
        running.says(
            "the newest revision could not be read",
            "shop@1 stays in force",
            "error[PUB001]",
            "bytes together, more than 256,000,000",
            "the largest is assets/big.yaml",
            "move files that are not intent elsewhere, or use a git repository",
        )
        motd.unlink()
        until("what is in force is looked after", motd.exists, running.said)
        big.unlink()
        running.says("the source is readable again; shop@1 stays in force")


def test_a_huge_file_in_git_is_refused_unread(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    motd = workspace.declare_file("motd", "one\n")
    workspace.commit()
    with workspace.run("--poll", "1s", prefix=bounded()) as running:
        running.says("production is as intended")
        commit = commit_zeros(workspace, "assets/big.yaml")
        running.says(
            f"{commit[:12]} was refused",
            "shop@1 stays in force",
            "error[GEN011]: the file has 240,000,000 bytes, more than 10,000,000",
            "--> assets/big.yaml",
            "fix: split it",
        )
        motd.unlink()
        until("what is in force is looked after", motd.exists, running.said)


def commit_zeros(workspace: Workspace, path: str) -> str:
    """Commit a file that is never on disk; the commit's id."""
    workspace.git("config", "core.bigFileThreshold", "1m")  # or git itself would have it in memory
    settings = ("-c", "core.compression=1", "-C", str(workspace.repository))
    command = ("git", *settings, "hash-object", "-w", "--stdin")
    git = subprocess.Popen(command, env=workspace.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert git.stdin is not None
    for _ in range(BLOB // 1_000_000):
        git.stdin.write(bytes(1_000_000))
    answer, _ = git.communicate()
    workspace.git("update-index", "--add", "--cacheinfo", f"100644,{answer.decode().strip()},{path}")
    workspace.git("commit", "--quiet", "--message", "Zeros")
    return workspace.git("rev-parse", "HEAD")


def test_ten_thousand_documents_in_one_file_are_as_good_as_ten_thousand_files(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assets = "".join(
        f"---\nid: a{number}\ntype: lehr.File\npayload: {{path: /nowhere/{number}, content: x}}\n"
        for number in range(10_000)
    )
    workspace.write("assets/all.yaml", assets)
    del workspace.environment["LEHR_STATE"]  # there is none yet
    assert "is valid: 10,000 assets" in workspace.lehr("validate", str(workspace.repository)).err
    workspace.write("assets/all.yaml", assets.replace("content: x", "contend: x"))
    done = workspace.lehr("validate", str(workspace.repository))
    done.failed(
        "unknown field `contend` in lehr.File",
        "did you mean `content`?",
        "error[GEN036]: assets/all.yaml has more than 1,000 problems",
        "1001 errors",
    )


def test_a_workspace_file_of_a_megabyte_is_read_and_its_problems_are_told_up_to_a_limit(
    tmp_path: Path,
) -> None:
    workspace = Workspace(tmp_path)
    workspace.declare_file("motd", "one\n")
    lines = "".join(f"  old-{number}: it went to the other place\n" for number in range(20_000))
    workspace.write("lehr.yaml", f"partition: shop\nlet_go:\n{lines}")
    del workspace.environment["LEHR_STATE"]  # there is none yet
    assert "is valid: 1 asset" in workspace.lehr("validate", str(workspace.repository)).err
    workspace.write("lehr.yaml", "partition: shop\n" + lines.replace("  old", "old"))
    done = workspace.lehr("validate", str(workspace.repository))
    done.failed("error[GEN002]: lehr.yaml: unknown field `old-0`", "--> lehr.yaml:2:1", "1001 errors")
