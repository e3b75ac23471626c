"""`examples/cloud`: created, drifted, changed, replaced with approval, and turned down, in order."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest

from tests.ports import free_ports
from tests.terraform.aws import moto, provider_program, sha256

EXAMPLE = Path(__file__).parents[3] / "examples" / "cloud"
TOKEN = "only-for-this-example"
KEY = "a-key-for-this-example"
_SCOPE = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/eu-central-1/{}/aws4_request, SignedHeaders=host, Signature=0"
)


class Workspace:
    """A copy of the example, over an AWS of its own."""

    def __init__(self, folder: Path, aws: str) -> None:
        self.folder, self.aws = folder, aws
        shutil.copytree(EXAMPLE, folder)
        program, port = provider_program(), free_ports(1)
        for path in folder.rglob("*.yaml"):
            text = path.read_text().replace("/opt/providers/terraform-provider-aws", str(program))
            text = text.replace("http://127.0.0.1:8425", aws).replace("8426", str(port))
            path.write_text(re.sub(r'"0{64}"', sha256(program), text))
        self.run("git", "init", "--quiet")
        self.commit("A cloud")

    def environment(self) -> dict[str, str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LEHR_"))
        }
        folder = str(self.folder.parent)
        own = {"XDG_STATE_HOME": f"{folder}/states", "HOME": folder}
        return inherited | own | {"AWS_SECRET_KEY": KEY, "SHOP_TOKEN": TOKEN}

    def run(self, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode in codes, done.stdout + done.stderr
        for secret in (TOKEN, KEY):
            assert secret not in done.stdout + done.stderr
        return done.stdout + done.stderr

    def lehr(self, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        return self.run(sys.executable, "-m", "lehr", *words, codes=codes)

    def commit(self, message: str) -> None:
        self.run("git", "add", ".")
        who = ("-c", "user.name=you", "-c", "user.email=you@localhost", "-c", "commit.gpgsign=false")
        self.run("git", *who, "commit", "--quiet", "--message", message)

    def edit(self, name: str, before: str, after: str) -> None:
        path = self.folder / "assets" / name
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """While `lehr run` is active."""
        program = subprocess.Popen(
            [sys.executable, "-m", "lehr", "run"],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            program.terminate()
            program.wait()

    def queues(self) -> list[str]:
        """Names of the queues that there are."""
        return re.findall(r"<QueueUrl>.*?/(\w+)</QueueUrl>", self.sqs(Action="ListQueues"))

    def sqs(self, **form: str) -> str:
        text = urllib.parse.urlencode({"Version": "2012-11-05", **form})
        request = urllib.request.Request(self.aws, text.encode(), {"Authorization": _SCOPE.format("sqs")})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())


def _approved(workspace: Workspace) -> int:
    """0 once the replacement has been approved, or nothing needs approval any more."""
    shown = workspace.lehr("why", "orders")
    if "lehr approve" not in shown:
        return 0 if "has converged" in shown else 1
    words = ("approve", "orders", "--reason", "a better name", "--yes")
    return 0 if "error" not in workspace.lehr(*words, codes=(0, 1)) else 1


@pytest.mark.timeout(1500)  # most of it are the provider's own waits
def test_the_cloud_is_created_changed_replaced_and_turned_down(tmp_path: Path) -> None:
    provider_program()
    with moto() as aws:
        workspace = Workspace(tmp_path / "cloud", aws)
        try:
            _test(workspace)
        finally:
            workspace.lehr("stop", "--processes", codes=(0, 1, 2))


def _test(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    url = re.findall(r"<QueueUrl>(.*?)</QueueUrl>", workspace.sqs(Action="ListQueues"))
    assert [item.rpartition("/")[2] for item in url] == ["orders"]
    assert "has converged" in workspace.lehr("why", "worker")

    changed = {"Attribute.1.Name": "DelaySeconds", "Attribute.1.Value": "99"}
    workspace.sqs(Action="SetQueueAttributes", QueueUrl=url[0], **changed)
    assert "delay_seconds: is 99, should be 5" in workspace.lehr("plan", codes=(0, 1, 2))
    workspace.edit("cloud.yaml", "delay_seconds: 5", "delay_seconds: 10")
    workspace.commit("A longer delay")
    workspace.lehr("run", "--once")
    shown = workspace.sqs(Action="GetQueueAttributes", QueueUrl=url[0], **{"AttributeName.1": "DelaySeconds"})
    assert "<Value>10</Value>" in shown

    workspace.edit("cloud.yaml", "name: orders", "name: purchases")
    workspace.edit("worker.yaml", ", orders]\n  ports", ", purchases]\n  ports")
    workspace.commit("Another name")
    assert "destroyed and created again" in workspace.lehr("plan", codes=(0, 1, 2))
    with workspace.running():
        while _approved(workspace) != 0 or workspace.queues() != ["purchases"]:
            sleep(1)
    workspace.lehr("run", "--once")
    assert "has converged" in workspace.lehr("why", "worker")

    turned_down = "  lehr.Turndown: {reason: the example ends, fence_seconds: 0}\n"
    workspace.edit("worker.yaml", "addons:\n", f"addons:\n{turned_down}")
    text = (workspace.folder / "assets" / "cloud.yaml").read_text()
    parts = [part.rstrip("\n") for part in text.split("\n\n")]
    ended = [f"{part}\n  addons:\n  {turned_down}" for part in parts]
    (workspace.folder / "assets" / "cloud.yaml").write_text("\n".join(ended))
    workspace.commit("The end")
    workspace.lehr("run", "--once", codes=(0, 1))
    assert "<QueueUrl>" not in workspace.sqs(Action="ListQueues")
