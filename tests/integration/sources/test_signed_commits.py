"""Only commits that an allowed key has signed are read: real git, ssh-keygen and gpg."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError
from lehr.sources import GitSource
from lehr.sources.signatures import Signers, SignersFile, keys_in
from tests.codes import raises
from tests.gpg import Keyring, keyring, needs_gpg

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen")


class Repository:
    """A repository that people commit to, each in their own way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, **variables: str) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.path), "GIT_CONFIG_NOSYSTEM": "1"}
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{role}_NAME": "Mallory", f"GIT_{role}_EMAIL": "m@example.org"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=environment | variables, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, content: str, *options: str, settings: tuple[str, ...] = (), **variables: str) -> str:
        (self.path / "lehr.yaml").write_text(content)
        self.git("add", "lehr.yaml")
        self.git(*settings, "commit", "-q", "-m", content, *options, **variables)
        return self.git("rev-parse", "HEAD")

    def by_ssh(self, key: Path, content: str) -> str:
        settings = ("-c", "gpg.format=ssh", "-c", f"user.signingKey={key}")
        return self.commit(content, "-S", settings=settings)

    def by_gpg(self, keyring: Keyring, fingerprint: str, content: str) -> str:
        settings = ("-c", "gpg.format=openpgp", "-c", f"user.signingKey={fingerprint}")
        return self.commit(content, "-S", settings=settings, GNUPGHOME=str(keyring.home))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "intent")


def ssh_key(folder: Path, name: str, kind: str = "ed25519") -> Path:
    path = folder / name
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", f"{name}@example.org", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


def public(key: Path) -> str:
    return key.with_suffix(".pub").read_text().strip()


@pytest.fixture
def gpg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyring]:
    with keyring(tmp_path_factory) as found:
        yield found


def follow(repository: Repository, *keys: str) -> GitSource:
    mirror = repository.path.parent / "mirror.git"
    return GitSource(str(repository.path), mirror, clock=SystemClock(), signers=Signers(keys))


def refused(source: GitSource) -> str:
    with raises("SRC147", StalledError) as caught:
        source.newest()
    return caught.value.why


@needs_ssh
@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_commit_that_an_ssh_key_has_signed_is_read(
    repository: Repository, tmp_path: Path, kind: str
) -> None:
    alice = ssh_key(tmp_path, "alice", kind)
    other = ssh_key(tmp_path, "other")
    commit = repository.by_ssh(alice, "partition: a\n")
    assert follow(repository, public(other), public(alice)).newest().revision.revision == commit


@needs_ssh
def test_a_key_that_is_taken_out_of_its_file_counts_no_more(repository: Repository, tmp_path: Path) -> None:
    alice, bob = ssh_key(tmp_path, "alice"), ssh_key(tmp_path, "bob")
    allowed = tmp_path / "allowed"
    allowed.write_text(f"{public(alice)}\n")
    mirror = tmp_path / "mirror.git"
    source = GitSource(str(repository.path), mirror, clock=SystemClock(), signers=SignersFile(allowed))
    first = repository.by_ssh(alice, "partition: a\n")
    assert source.newest().revision.revision == first
    allowed.write_text(f"{public(bob)}\n")
    repository.by_ssh(alice, "partition: b\n")
    assert "which is not listed" in refused(source)
    second = repository.by_ssh(bob, "partition: c\n")
    assert source.newest().revision.revision == second
    allowed.unlink()
    repository.by_ssh(bob, "partition: d\n")
    with raises("SRC150", StalledError):
        source.newest()


@needs_ssh
def test_an_unsigned_commit_is_not_read_and_it_is_said_whose_it_is_and_which_keys_are_allowed(
    repository: Repository, tmp_path: Path
) -> None:
    alice = ssh_key(tmp_path, "alice")
    good = repository.by_ssh(alice, "partition: a\n")
    source = follow(repository, public(alice))
    assert source.newest().revision.revision == good
    bad = repository.commit("partition: b\n")
    with raises("SRC147", StalledError) as caught:
        source.newest()
    assert bad[:12] in caught.value.what
    assert caught.value.why == "Mallory <m@example.org> made it, and it has no signature"
    assert "(alice@example.org)" in caught.value.fix
    assert "it has no signature" in refused(follow(repository, public(alice)))
    merged = repository.by_ssh(alice, "partition: c\n")
    assert source.newest().revision.revision == merged


@needs_ssh
def test_a_key_that_is_not_listed_does_not_count_whatever_the_user_has_configured(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, mallory = ssh_key(tmp_path, "alice"), ssh_key(tmp_path, "mallory")
    (tmp_path / "all").write_text(f"* {public(mallory)}\n")
    (tmp_path / "gitconfig").write_text(f'[gpg "ssh"]\n\tallowedSignersFile = {tmp_path / "all"}\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    repository.by_ssh(mallory, "partition: a\n")
    assert "which is not listed" in refused(follow(repository, public(alice)))


@needs_ssh
def test_a_signature_of_another_commit_does_not_count(repository: Repository, tmp_path: Path) -> None:
    alice = ssh_key(tmp_path, "alice")
    repository.by_ssh(alice, "partition: a\n")
    content = subprocess.run(
        ["git", "cat-file", "commit", "HEAD"], cwd=repository.path, check=True, capture_output=True
    ).stdout
    forged = tmp_path / "forged"
    forged.write_bytes(content.replace(b"\n\npartition: a", b"\n\npartition: mine"))
    id = repository.git("hash-object", "-t", "commit", "-w", str(forged))
    repository.git("update-ref", "refs/heads/main", id)
    assert "is not valid" in refused(follow(repository, public(alice)))


@needs_gpg
def test_a_commit_that_an_openpgp_key_has_signed_is_read_and_no_other(
    repository: Repository, gpg: Keyring
) -> None:
    alice, mallory = gpg.key("alice"), gpg.key("mallory")
    good = repository.by_gpg(gpg, alice, "partition: a\n")
    source = follow(repository, gpg.public(alice))
    assert source.newest().revision.revision == good
    repository.by_gpg(gpg, mallory, "partition: b\n")
    assert "which is not listed" in refused(source)
    assert alice in str(_error(source))
    repository.commit("partition: c\n")
    assert "it has no signature" in refused(source)


@needs_gpg
@needs_ssh
def test_keys_of_both_kinds_may_be_allowed_together(
    repository: Repository, gpg: Keyring, tmp_path: Path
) -> None:
    alice, bob = ssh_key(tmp_path, "alice"), gpg.key("bob")
    keys = keys_in(f"# who may\n{gpg.public(bob)}\n{public(alice)}\n")
    source = follow(repository, *keys)
    repository.by_gpg(gpg, bob, "2")
    assert source.newest().read("lehr.yaml") == b"2"
    repository.by_ssh(alice, "3")
    assert source.newest().read("lehr.yaml") == b"3"
    assert "which is not listed" in refused(follow(repository, gpg.public(bob)))


@pytest.mark.parametrize("key", ["ssh-ed25519", "ssh-ed25519 AAAA", "nonsense", "ssh-ed25519 !! a", "a b c"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with raises("SRC151", StalledError):
        Signers([key])


def test_no_key_at_all_is_refused() -> None:
    with raises("SRC146", StalledError):
        Signers([])


@needs_ssh
def test_a_file_of_allowed_signers_is_understood(repository: Repository, tmp_path: Path) -> None:
    alice = ssh_key(tmp_path, "alice")
    kind, blob, _ = public(alice).split()
    commit = repository.by_ssh(alice, "partition: a\n")
    for options in ("", 'namespaces="git" '):
        keys = keys_in(f"# signers\nalice@example.org {options}{kind} {blob}\n\n")
        assert follow(repository, *keys).newest().revision.revision == commit


@pytest.mark.parametrize("options", ['a@example.org valid-before="20200101"', 'expiry-time="20200101"'])
def test_an_option_that_would_be_lost_is_refused(options: str) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Vb1m2ZPYlwsM0Pc1Q0Oqk7sWn1k3v0Zp7fZQd3hXq"
    Signers([key])
    with raises("SRC151", StalledError):
        Signers([f"{options} {key}"])


def _error(source: GitSource) -> StalledError:
    with raises("SRC147", StalledError) as caught:
        source.newest()
    return caught.value
