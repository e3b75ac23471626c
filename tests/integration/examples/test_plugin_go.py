"""The example of a plugin in Go keeps all rules of plugins, and passes its own tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest
import yaml
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from lehr.testing.conformance.asset_plugin import RULES, Rule
from lehr.testing.plugin_fixtures import Fixtures, PluginUnderTest, Result
from tests.golang import EXAMPLE, ROOT, built, go

PACKAGE = EXAMPLE / "lehrplugin"


def fixtures(name: str) -> Fixtures:
    content = (EXAMPLE / "fixtures" / name / "test.yaml").read_text()
    return msgspec.convert(yaml.safe_load(content), Fixtures)


async def result(plugin: PluginUnderTest, rule: Rule) -> Result:
    found = [found async for found in plugin.results([rule])]
    return found[0]


@pytest.mark.parametrize("name", ["record", "secret", "zone"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_plugin_keeps_the_contract(rule: Rule, name: str) -> None:
    plugin = PluginUnderTest(("sh", "-c", 'exec "$0" "$PRODUCTION"', str(built(EXAMPLE))), fixtures(name))
    found = asyncio.run(result(plugin, rule))
    assert not found.broken, (found.broken, found.log)


def test_its_own_tests_pass() -> None:
    done = go(EXAMPLE, "test", ".", "./lehrplugin")
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_formatted_and_vetted() -> None:
    vetted = go(EXAMPLE, "vet", ".", "./lehrplugin")
    assert vetted.returncode == 0, vetted.stderr
    formatted = subprocess.run(["gofmt", "-l", str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert not formatted.stdout


def test_a_person_who_starts_it_reads_one_sentence() -> None:
    done = subprocess.run([built(EXAMPLE)], capture_output=True, text=True, env={}, timeout=60)
    assert done.returncode == 1
    assert not done.stdout
    assert done.stderr.startswith("zones is a plugin of Lehr")
    assert len(done.stderr.splitlines()) == 1


def test_it_names_the_versions_that_do_not_fit(tmp_path: Path) -> None:
    done = subprocess.run(
        [built(EXAMPLE)],
        capture_output=True,
        text=True,
        env={**started_by_lehr(tmp_path), "PLUGIN_PROTOCOL_VERSIONS": "2,11"},
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == "the plugin speaks version 1 of the protocol, and Lehr 2,11\n"


@pytest.mark.parametrize("how", ["stdin", "SIGTERM"])
def test_it_ends_when_lehr_does(how: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [built(EXAMPLE), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=started_by_lehr(tmp_path),
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            socket = tmp_path / "plugin.sock"
            assert process.stdout.readline() == f"1|1|unix|{socket}|grpc\n"
            assert socket.is_socket()
            if how == "stdin":
                process.stdin.close()
            else:
                process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def started_by_lehr(folder: Path) -> dict[str, str]:
    return {
        "LEHR_PLUGIN_COOKIE": "6c656872",
        "PLUGIN_PROTOCOL_VERSIONS": "1",
        "PLUGIN_UNIX_SOCKET_DIR": str(folder),
    }


def test_its_messages_are_those_of_the_protocol() -> None:
    code = (PACKAGE / "v1/plugin.pb.go").read_text()
    described = re.search(r"file_plugin_proto_rawDesc = \[\]byte\{(.*?)\n\}", code, re.DOTALL)
    assert described is not None
    found = FileDescriptorProto.FromString(bytes.fromhex(re.sub(r"0x|[,\s]", "", described[1])))
    definition = (ROOT / "src/lehr/plugins/remote/plugin.binpb").read_bytes()
    (expected,) = FileDescriptorSet.FromString(definition).file
    assert found == expected, f"generated code is stale: go generate, in {PACKAGE.name}"


def test_its_generated_code_is_what_the_compiler_writes(tmp_path: Path) -> None:
    for program in ("protoc", "protoc-gen-go", "protoc-gen-go-grpc"):
        if shutil.which(program) is None:
            pytest.skip(f"NO {program}: whether generated code is up to date was not tested here")
    options = ("--go_opt=module=lehr.dev/plugin", "--go-grpc_opt=module=lehr.dev/plugin")
    output = (f"--go_out={tmp_path}", f"--go-grpc_out={tmp_path}")
    subprocess.run(["protoc", f"-I{PACKAGE / 'v1'}", *output, *options, "plugin.proto"], check=True)
    for generated in (tmp_path / "v1").iterdir():
        assert without_versions(generated) == without_versions(PACKAGE / "v1" / generated.name)


def without_versions(file: Path) -> str:
    """The code, without the comment that names the compilers."""
    return "\n".join(line for line in file.read_text().splitlines() if not line.startswith("//"))
