"""Given keys that may sign, when somebody else commits, then that is not read, and it is said why."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen")


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    """A workspace whose commits one key signs, which is the only one that may."""
    workspace = Workspace(tmp_path)
    key = tmp_path / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada@example.org", "-f", str(key)]
    subprocess.run(command, check=True)
    (tmp_path / "signers").write_text(f"# who may\n{key.with_suffix('.pub').read_text()}")
    workspace.declare_file("motd", "hello")
    workspace.git("init", "--quiet", "--initial-branch=main")
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(key)), ("commit.gpgSign", "true")):
        workspace.git("config", name, value)
    workspace.commit()
    return workspace


def test_an_unsigned_commit_is_not_published_until_somebody_signs(shop: Workspace) -> None:
    motd = shop.production / "motd.txt"
    with shop.run("--signed-by", str(shop.folder / "signers")) as running:
        running.says("production is as intended")
        # when somebody commits without a signature
        shop.git("config", "commit.gpgSign", "false")
        shop.declare_file("motd", "bad news")
        bad = shop.commit()
        # then it is said whose commit it is, what is wrong, and who may
        said = running.says("PUB001", f"the commit {bad[:12]}", "is not signed by an allowed key")
        assert "Somebody <somebody@example.org> made it, and it has no signature" in " ".join(said.split())
        assert "(ada@example.org)" in said
        # and what was in force stays
        assert motd.read_text() == "hello"
        assert shop.sequence() == 1
        # when somebody who may signs a commit on top of it, then that is published
        shop.git("config", "commit.gpgSign", "true")
        shop.declare_file("motd", "good news")
        shop.commit()
        shop.wait("--for", "incarnation=2")
        shop.wait()
        assert motd.read_text() == "good news"


def test_keys_may_be_named_by_the_environment_but_never_by_the_workspace(shop: Workspace) -> None:
    shop.environment["LEHR_SIGNED_BY"] = str(shop.folder / "signers")
    assert shop.once().code == 0
    # when a commit brings along keys of its own
    shop.git("config", "commit.gpgSign", "false")
    shop.write("lehr.yaml", "partition: shop\nsigned_by: [ssh-ed25519 AAAA]\n")
    shop.commit()
    # then it is not even read
    shop.once().failed("is not signed by an allowed key")
    # and a name that is empty asks for no less
    shop.environment["LEHR_SIGNED_BY"] = ""
    done = shop.once()
    assert done.code == 2
    assert "LEHR_SIGNED_BY is empty" in done.err


def test_what_cannot_be_signed_or_judged_is_refused(shop: Workspace) -> None:
    signers = ("--signed-by", str(shop.folder / "signers"))
    shop.once("--source", "directory", *signers).failed("cannot be signed", "use a git repository")
    shop.once("--signed-by", str(shop.folder / "nobody")).failed("nobody cannot be read", "public keys")
    (shop.folder / "none").write_text("# nobody\n")
    shop.once("--signed-by", str(shop.folder / "none")).failed("no signing keys are allowed")
