"""Secrets are read from where references say: variables, files, and files encrypted with age or SOPS."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.secret import Secret
from lehr.secrets import IDENTITY, IDENTITY_FILE, IDENTITY_NAME, SecretReader, age
from tests.gpg import Keyring, keyring, needs_gpg

CANARY = "canary-4711"
DOCUMENT = f"db:\n  password: {CANARY}\n".encode()
DIGEST = "d" * 40


class Machine:
    """A machine with a key of its own and one encrypted file that was kept."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.base, self.state = folder / "base", folder / "state"
        self.base.mkdir()
        self.state.mkdir()
        made = age.generate()
        self.identity, self.recipient = made.line, made.recipient
        self.kept = {DIGEST: age.encrypt(DOCUMENT, [self.recipient])}
        self.environment = {IDENTITY: self.identity} if environment is None else dict(environment)

    def read(self, text: str, digest: str | None = DIGEST) -> bytes:
        reader = SecretReader(
            self.base,
            self.state,
            lambda path, digest: self.kept.get(digest),
            self.environment,
            Inline(),
        )
        return asyncio.run(reader.read(Secret(text, digest=digest))).content()

    def failure(self, text: str, digest: str | None = DIGEST) -> LehrError:
        with pytest.raises(LehrError) as error:
            self.read(text, digest)
        assert CANARY not in str(error.value)
        assert self.identity not in str(error.value)
        return error.value


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_variables_and_files_are_read_as_they_are(machine: Machine) -> None:
    machine.environment["A"] = "päss\n"
    (machine.base / "b").write_bytes(b"\x00binary\n")
    assert machine.read("env:A") == "päss\n".encode()
    assert machine.read("file:b") == b"\x00binary\n"
    assert machine.read(f"file:{machine.base / 'b'}") == b"\x00binary\n"


def test_what_is_not_there_is_named(machine: Machine) -> None:
    assert isinstance(machine.failure("env:GONE"), StalledError)
    assert isinstance(machine.failure("file:gone"), TransientError)
    assert isinstance(machine.failure("file:."), TransientError)
    assert isinstance(machine.failure("age:gone.age", "e" * 40), StalledError)
    assert isinstance(machine.failure("age:gone.age", None), StalledError)


def test_files_of_age_are_decrypted_whole_or_by_key(machine: Machine) -> None:
    assert machine.read("age:s.yaml.age") == DOCUMENT
    assert machine.read("age:s.yaml.age#db.password") == CANARY.encode()
    assert "db.gone" in str(machine.failure("age:s.yaml.age#db.gone"))


def test_identities_come_from_a_variable_a_named_file_or_the_state_folder(machine: Machine) -> None:
    named = machine.base / "key.txt"
    for place, environment in (
        (named, {IDENTITY_FILE: str(named)}),
        (machine.state / IDENTITY_NAME, {}),
    ):
        place.write_text(f"# a comment\n{machine.identity}\n")
        place.chmod(0o600)
        machine.environment = dict(environment)
        assert machine.read("age:s.yaml.age#db.password") == CANARY.encode()


def test_an_identity_that_others_can_read_is_not_used(machine: Machine) -> None:
    place = machine.state / IDENTITY_NAME
    place.write_text(machine.identity)
    place.chmod(0o640)
    machine.environment = {}
    assert "0640" in str(machine.failure("age:s.yaml.age"))


@pytest.mark.parametrize("identity", ["", "AGE-SECRET-KEY-1BROKEN", "# nothing", "-----BEGIN nonsense"])
def test_what_is_no_identity_is_refused_and_not_told(tmp_path: Path, identity: str) -> None:
    machine = Machine(tmp_path, {IDENTITY: identity})
    said = str(machine.failure("age:s.yaml.age"))
    assert "keygen" in said
    assert "BROKEN" not in said


def test_a_file_for_others_and_a_damaged_one_are_told_apart(machine: Machine) -> None:
    others = age.encrypt(DOCUMENT, [age.generate().recipient])
    machine.kept = {"a" * 40: others, "b" * 40: machine.kept[DIGEST][:-80], "c" * 40: b"no age"}
    assert "keys" in str(machine.failure("age:s.age", "a" * 40))
    assert "damaged" in str(machine.failure("age:s.age", "b" * 40))
    assert "damaged" in str(machine.failure("age:s.age", "c" * 40))


def test_ssh_keys_are_identities_and_recipients_too(machine: Machine, tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen, to make an SSH key")
    key = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = key.with_suffix(".pub").read_text().strip()
    assert age.is_recipient(public)
    machine.kept[DIGEST] = age.encrypt(DOCUMENT, [public])
    machine.environment = {IDENTITY_FILE: str(key)}
    assert machine.read("age:s.yaml.age") == DOCUMENT


# --- SOPS ---------------------------------------------------------------------------------

STAND_IN = """\
#!/bin/sh
# Takes what the real one takes; "decrypts" by taking a first line away.
[ "$1 $2" = "--decrypt --input-type" ] || exit 9
for last; do :; done
head -n 1 "$last" | grep -q "^sops" || { echo "metadata not found in $last" >&2; exit 1; }
tail -n +2 "$last"
"""


def stand_in(machine: Machine, folder: Path) -> None:
    program = folder / "bin" / "sops"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(stat.S_IRWXU)
    machine.environment["PATH"] = f"{program.parent}:/usr/bin:/bin"


def test_files_of_sops_are_decrypted_by_the_command(machine: Machine, tmp_path: Path) -> None:
    stand_in(machine, tmp_path)
    machine.kept[DIGEST] = b'sops\n{"db": {"password": "canary-4711"}}\n'
    assert machine.read("sops:p.yaml#db.password") == CANARY.encode()
    assert machine.read("sops:p.yaml").strip() == b'{"db": {"password": "canary-4711"}}'


def test_a_refusal_of_sops_is_told_with_the_path_that_people_know(machine: Machine, tmp_path: Path) -> None:
    stand_in(machine, tmp_path)
    machine.kept[DIGEST] = b"plain"
    error = machine.failure("sops:secrets/p.yaml#a")
    assert isinstance(error, TransientError)
    assert "metadata not found in secrets/p.yaml" in str(error)


def test_what_sops_prints_is_not_told_where_it_is_no_document(machine: Machine, tmp_path: Path) -> None:
    stand_in(machine, tmp_path)
    machine.kept[DIGEST] = f"sops\n{CANARY} [".encode()
    assert isinstance(machine.failure("sops:p.yaml#a"), StalledError)


def test_without_sops_its_files_wait_for_a_person(machine: Machine) -> None:
    machine.environment["PATH"] = "/nowhere"
    error = machine.failure("sops:p.yaml")
    assert isinstance(error, StalledError)
    assert "install" in str(error)


@pytest.fixture
def gpg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyring]:
    with keyring(tmp_path_factory) as found:
        yield found


@pytest.fixture
def sops() -> str:
    program = shutil.which("sops")
    if program is None:
        pytest.skip("needs the sops command: only the stand-in was tested")
    return program


def test_the_real_sops_decrypts_what_it_encrypted_with_age(
    machine: Machine, tmp_path: Path, sops: str
) -> None:
    if b"--age" not in subprocess.run([sops, "--help"], capture_output=True, check=True).stdout:
        pytest.skip("this sops knows no age")
    decrypts(machine, tmp_path, [sops, "--age", machine.recipient], {"SOPS_AGE_KEY": machine.identity})


@needs_gpg
def test_the_real_sops_decrypts_what_it_encrypted_with_pgp(
    machine: Machine, tmp_path: Path, sops: str, gpg: Keyring
) -> None:
    decrypts(machine, tmp_path, [sops, "--pgp", gpg.key("bob", encrypts=True)], {"GNUPGHOME": str(gpg.home)})


def decrypts(machine: Machine, folder: Path, encrypts: Sequence[str], keys: Mapping[str, str]) -> None:
    plain = folder / "p.yaml"
    plain.write_bytes(DOCUMENT)
    machine.environment |= {**keys, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [*encrypts, "--encrypt", str(plain)], env=machine.environment, capture_output=True, check=True
    )
    machine.kept[DIGEST] = done.stdout
    assert CANARY.encode() not in done.stdout
    assert machine.read("sops:p.yaml#db.password") == CANARY.encode()
    machine.kept[DIGEST] = done.stdout.replace(b"data:", b"data:AAAA")
    assert isinstance(machine.failure("sops:p.yaml#db.password"), TransientError)
