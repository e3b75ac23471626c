"""Parameters of AWS through the provider's protocol, against the terraform command: processor time.

SIZE is the number of SSM parameters (200), in an AWS on loopback (moto). Its processor time does not count:
figures are seconds of the processor of Lehr and the provider, or of terraform and its providers.

* The parameters are created and planned again without a change: by Lehr's client, 20 at once, with a
  provider that keeps running, and by `terraform apply` or `plan`, the peer, in an AWS of its own.
* One is changed: while `lehr run` is active, by a commit, until the AWS has the new value and Lehr has looked
  again; and by `terraform apply`, which reads all of them. Lehr compares only the asset that has changed. The
  first change after the start also loads what no other has loaded; then CHANGES (10) follow, one at a time.
* Turns of one provider (`TerraformPlugin.diff`: import, read and plan of one parameter), 20 at once, whose
  API is a stub that repeats recorded answers: turns per second, processor time per turn, memory of the
  provider, and its growth over TURNS turns (environment variable; 2,000).

Needs the AWS provider, moto and terraform: see `tests/terraform/aws.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks import figures
from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.model.asset import AssetId, make_asset
from lehr.model.types import Registry
from lehr.plugins.plugin_process import PluginProcess, PluginProcesses, Program
from lehr.plugins.terraform.kept_schemas import KeptSchemas
from lehr.plugins.terraform.launch import Launcher
from lehr.plugins.terraform.payload import (
    TERRAFORM_PROVIDER,
    TERRAFORM_RESOURCE,
    TYPES,
    TerraformProvider,
    TerraformResource,
)
from lehr.plugins.terraform.plugin import TerraformPlugin
from lehr.plugins.terraform.provider import State
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.proposed import proposed_new
from lehr.plugins.terraform.wire.client import WireProvider
from lehr.plugins.terraform.wire.starting import Providers
from lehr.testing.plugins import FixedReader, target_of
from tests.ports import free_ports
from tests.terraform import aws
from tests.terraform.command import Terraform

AT_ONCE = 20
CHANGES = int(os.environ.get("CHANGES", "10"))
TURNS = int(os.environ.get("TURNS", "2000"))
TYPE = "aws_ssm_parameter"
PEER = "terraform"
SCOPE = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/ssm/aws4_request, SignedHeaders=host, Signature=0"
)
CONFIGURATION: dict[str, Any] = {
    "region": "us-east-1",
    "access_key": "test",
    "secret_key": "test",
    "skip_credentials_validation": True,
    "skip_metadata_api_check": True,
}


def written(number: int, value: str = "1") -> dict[str, Any]:
    return {"name": f"/bench/{number}", "type": "String", "value": value}


class Measured(PluginProcesses):
    """Starts processes, and remembers the last one."""

    last: PluginProcess

    async def start(self, *arguments: Any, **more: Any) -> PluginProcess:
        self.last = await super().start(*arguments, **more)
        return self.last

    def used(self) -> float:
        """Seconds of the processor: of this process, and of the provider."""
        ours = resource.getrusage(resource.RUSAGE_SELF)
        fields = Path(f"/proc/{self.last.pid}/stat").read_text().rpartition(")")[2].split()
        return ours.ru_utime + ours.ru_stime + sum(map(int, fields[11:13])) / 100


async def each(call: Callable[[int], Awaitable[Any]], count: int) -> list[Any]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> Any:
        async with places:
            return await call(number)

    return list(await asyncio.gather(*map(one, range(count))))


async def turns(
    provider: WireProvider, states: Sequence[State], intended: Sequence[dict[str, Any]]
) -> list[State]:
    return await each(lambda number: turn(provider, states[number], intended[number]), len(states))


async def turn(provider: WireProvider, state: State, intended: dict[str, Any]) -> State:
    """Read it, plan it, and apply the plan if it changes something."""
    block = provider.schema.resources[TYPE].block
    config = configured(block, intended)[0]
    if state.value is not None:
        state = await provider.read_resource(TYPE, state)
    planned = await provider.plan(TYPE, state, proposed_new(block, state.value, config), config)
    if planned.value == state.value:
        return state
    applied = await provider.apply(TYPE, state, planned, config)
    assert not applied.diagnostics, applied.diagnostics
    return applied.state


async def ours(size: int) -> dict[str, float]:
    with aws.moto() as address:
        processes = Measured(Inline(), SystemClock())
        program = Program((str(aws.provider_program()),), {"AWS_ENDPOINT_URL": address})
        before = resource.getrusage(resource.RUSAGE_SELF)
        provider = await Providers(processes).start(program, log=lambda _line: None)
        await provider.configure(configured(provider.schema.provider.block, CONFIGURATION)[0])
        found = {"start": processes.used() - before.ru_utime - before.ru_stime}
        try:
            states = [State(None)] * size
            for name in ("create", "no change"):
                at = processes.used()
                states = await turns(provider, states, [written(number) for number in range(size)])
                found[name] = processes.used() - at
        finally:
            await provider.close()
    return found


def spent(pid: int) -> float:
    """Seconds of the processor of a process, and of all that it has started."""
    parents, seconds = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
                seconds[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    tree = {pid}
    while more := {child for child, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(seconds.get(one, 0.0) for one in tree)


class Workspace:
    """A workspace with one file for each parameter, and Lehr in it."""

    def __init__(self, folder: Path, address: str, size: int) -> None:
        self.folder = folder / "work"
        self.address = address
        self.size = size
        (self.folder / "assets").mkdir(parents=True)
        (self.folder / "lehr.yaml").write_text("partition: bench\n")
        program = aws.provider_program()
        provider = {
            "path": str(program),
            "sha256": aws.sha256(program),
            "config": CONFIGURATION,
            "environment": {"AWS_ENDPOINT_URL": address},
            "calls_per_second": 1000,
        }
        self._write("aws", "lehr.TerraformProvider", provider)
        for number in range(size):
            self.write(number, "1")
        self.run("git", "init", "--quiet")
        self.commit("Parameters")

    def write(self, number: int, value: str) -> None:
        config = written(number, value)
        payload = {"provider": "aws", "type": TYPE, "import": config["name"], "config": config}
        self._write(f"p{number}", "lehr.TerraformResource", payload)

    def _write(self, id: str, type: str, payload: dict[str, Any]) -> None:
        text = yaml.safe_dump({"id": id, "type": type, "payload": payload})
        (self.folder / "assets" / f"{id}.yaml").write_text(text)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_STATE_HOME": str(self.folder.parent / "state")}

    def run(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(self, message: str) -> None:
        who = ("-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "commit.gpgsign=false")
        self.run("git", "add", ".")
        self.run("git", *who, "commit", "--quiet", "--message", message)

    @contextlib.contextmanager
    def running(self) -> Iterator[int]:
        """While `lehr run` is active; its process id."""
        words = [sys.executable, "-m", "lehr", "run"]
        silent = subprocess.DEVNULL
        program = subprocess.Popen(
            words, cwd=self.folder, env=self.environment(), stdout=silent, stderr=silent
        )
        try:
            yield program.pid
        finally:
            program.terminate()
            program.wait()

    def value(self, number: int) -> str:
        """The value of a parameter in AWS; empty if it is not there."""
        headers = {
            "X-Amz-Target": "AmazonSSM.GetParameter",
            "Content-Type": "application/x-amz-json-1.1",
            "Authorization": SCOPE,
        }
        body = json.dumps({"Name": written(number)["name"]}).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.address, body, headers)) as answer:
                return str(json.load(answer)["Parameter"]["Value"])
        except urllib.error.HTTPError:
            return ""

    def change(self, number: int, value: str) -> None:
        """Commit another value of a parameter, and wait until AWS has it, and Lehr has looked again."""
        self.write(number, value)
        self.commit("One change")
        self.until(lambda: self.value(number) == value, 120)
        time.sleep(3.0)  # outcome and second look

    def until(self, reached: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, self.run(sys.executable, "-m", "lehr", "status")
            time.sleep(0.2)

    def has_settled(self) -> bool:
        done = subprocess.run(
            [sys.executable, "-m", "lehr", "status"],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return f"{self.size} Converged" in done.stdout


class Changed(NamedTuple):
    """Seconds of the processor of a running Lehr.

    Attributes:
        first: for the first change of one parameter.
        next: for each of those that follow.
        idle: in a rest as long as one change is looked at.
    """

    first: float
    next: float
    idle: float


def one_change(size: int) -> Changed:
    """Changes one parameter after another."""
    with aws.moto() as address, tempfile.TemporaryDirectory() as folder:
        work = Workspace(Path(folder), address, size)
        with work.running() as pid:
            work.until(lambda: all(work.value(number) for number in (0, size - 1)), 300)
            work.until(work.has_settled, 300)
            time.sleep(5.0)
            used = [spent(pid)]
            started = time.monotonic()
            for number in range(CHANGES + 1):
                work.change(number % size, f"{number + 2}")
                used.append(spent(pid))
            took = time.monotonic() - started
            time.sleep(took)
            begin, first, *_, last = used
            idle = (spent(pid) - last) / (CHANGES + 1)
            return Changed(first - begin, (last - first) / CHANGES, idle)


def serve_recorded(moto: str, port: int) -> None:
    """An API that answers each request as moto has answered it the first time."""
    known: dict[tuple[bytes, bytes], bytes] = {}

    def ask(head: bytes, body: bytes) -> bytes:
        names = ("x-amz-target", "authorization", "content-type")
        lines = (line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        headers = {name.decode(): value.decode() for name, value in lines if name.decode().lower() in names}
        request = urllib.request.Request(moto, body, headers)
        with urllib.request.urlopen(request) as answer:
            content: bytes = answer.read()
        start = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.1\r\nContent-Length: %d\r\n\r\n"
        return start % len(content) + content

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
                body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
                key = (fields.get(b"x-amz-target", b""), body)
                if key not in known:
                    known[key] = await asyncio.to_thread(ask, head, body)
                writer.write(known[key])

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(run())


@contextlib.contextmanager
def recorded(moto: str) -> Iterator[str]:
    """The address of `serve_recorded`, in a process of its own."""
    port = free_ports(1)
    server = multiprocessing.get_context("spawn").Process(target=serve_recorded, args=(moto, port))
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.join()


class Turns(NamedTuple):
    """Turns of one provider.

    Attributes:
        per_second: turns.
        processor: seconds for a turn, of Lehr and the provider.
        memory: MiB of the provider, configured, after some turns.
        own: MiB of these without its program's file, which is mapped, and can be dropped at any time.
        growth: share by which that has grown during all turns.
    """

    per_second: float
    processor: float
    memory: float
    own: float
    growth: float


async def looks(kept: KeptSchemas) -> Turns:
    """Turns of one provider whose API answers at once; it is asked for its schemas unless they are `kept`."""
    with aws.moto() as moto, recorded(moto) as address:
        program = aws.provider_program()
        payload = TerraformProvider(
            path=str(program),
            sha256=aws.sha256(program),
            config=CONFIGURATION,
            environment={"AWS_ENDPOINT_URL": address},
            calls_per_second=1000,
            concurrency=AT_ONCE,
        )
        provider = make_asset(AssetId("aws"), TERRAFORM_PROVIDER, payload, {})
        config = written(0)
        resource_of_it = TerraformResource(provider="aws", type=TYPE, config=config, import_=config["name"])
        asset = make_asset(AssetId("p0"), TERRAFORM_RESOURCE, resource_of_it, {})
        read, clock = FixedReader([asset, provider], Registry(TYPES)), SystemClock()
        plugin = TerraformPlugin(clock, Launcher(Path("/"), Inline(), clock, kept).start, Inline())
        parameter_in(moto, config)
        try:

            async def look(_number: int) -> None:
                assert (await plugin.diff(target_of(asset), read)).empty

            await each(look, 10 * AT_ONCE)
            pid = child(program.name)
            at, memory, own = time.process_time() + spent(pid), memory_of(pid), memory_of(pid, "RssAnon")
            started = time.monotonic()
            await each(look, TURNS)
            took, used = time.monotonic() - started, time.process_time() + spent(pid) - at
            return Turns(TURNS / took, used / TURNS, memory, own, memory_of(pid) / memory - 1)
        finally:
            await plugin.close()


def parameter_in(address: str, config: dict[str, Any]) -> None:
    """Create it by hand."""
    headers = {
        "X-Amz-Target": "AmazonSSM.PutParameter",
        "Content-Type": "application/x-amz-json-1.1",
        "Authorization": SCOPE,
    }
    names = {"name": "Name", "type": "Type", "value": "Value"}
    body = json.dumps({names[name]: value for name, value in config.items()}).encode()
    urllib.request.urlopen(urllib.request.Request(address, body, headers)).close()


def child(name: str) -> int:
    """The process of this one whose command has a name."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid() and name.encode() in (folder / "cmdline").read_bytes():
                return int(folder.name)
    raise AssertionError(f"no process has {name}")


def memory_of(pid: int, kind: str = "VmRSS") -> float:
    """MiB of memory that a process has."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(kind)]
    return int(line.split()[1]) / 1024


def theirs(size: int) -> dict[str, float]:
    with aws.moto() as address, tempfile.TemporaryDirectory() as folder:
        binaries = aws.provider_program().parent
        terraform = Terraform(
            Path(folder), "hashicorp/aws", binaries, CONFIGURATION, {"AWS_ENDPOINT_URL": address}
        )
        found = {}
        for name, changed, command in (
            ("create", 0, "apply"),
            ("no change", 0, "plan"),
            ("one changed", 1, "apply"),
        ):
            declared = {f"p{n}": written(n, "2" if n < changed else "1") for n in range(size)}
            terraform.write({TYPE: declared})
            at = figures.cpu_seconds()
            arguments = ("-auto-approve",) if command == "apply" else ()
            terraform.run(command, *arguments, f"-parallelism={AT_ONCE}", "-input=false", "-no-color")
            found[name] = figures.cpu_seconds() - at
        return found


def main() -> None:
    """Print the figures."""
    size = figures.size(200)
    mine = asyncio.run(ours(size))
    changed = one_change(size)
    peers = theirs(size) if shutil.which("terraform") else {}

    def peer(name: str) -> figures.Peer | None:
        return figures.Peer(PEER, peers[name]) if name in peers else None

    figures.report("provider started and configured, processor", mine["start"], "s", 1)
    for name in ("create", "no change"):
        figures.report(f"parameters, {name}, processor", mine[name], "s", size, peer=peer(name))
    figures.report("one of the parameters changed, first change, processor", changed.first, "s", size)
    figures.report(
        "one of the parameters changed, processor of lehr run",
        changed.next,
        "s",
        size,
        peer=peer("one changed"),
    )
    figures.report("lehr run at rest for as long, processor", changed.idle, "s", size)
    with tempfile.TemporaryDirectory() as folder:
        kept = KeptSchemas(Path(folder) / "schemas")
        first = asyncio.run(looks(kept)).memory
        figures.report("memory of a provider that was asked for its schemas", first, "MiB", TURNS)
        found = asyncio.run(looks(kept))
    figures.report("turns of one provider whose API answers at once", found.per_second, "turns/s", TURNS)
    figures.report("processor for a turn", 1000 * found.processor, "ms", TURNS)
    figures.report("memory of the provider", found.memory, "MiB", TURNS)
    figures.report("of these, without its program's file", found.own, "MiB", TURNS)
    figures.report("growth of that memory over all turns", 100 * found.growth, "%", TURNS)


if __name__ == "__main__":
    main()
