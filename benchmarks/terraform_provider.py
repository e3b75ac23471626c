"""Parameters of AWS through the provider's protocol, against the terraform command: processor time.

SIZE is the number of SSM parameters (200), in an AWS on loopback (moto), whose processor time does not count.
They are created, planned again without a change, and one is changed: by Lehr's client, 20 at once, with a
provider that keeps running, and by `terraform apply` or `plan`, the peer, in an AWS of its own. Reported
are seconds of the processor: of this process and the provider, or of terraform and its providers. Also: the
start and configuration of one provider, and turns (read and plan) of one process per second.

Needs the AWS provider, moto and terraform: AWS_PROVIDER and MOTO_SERVER, as in `tests/terraform/aws.py`.
"""

from __future__ import annotations

import asyncio
import resource
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.plugins.plugin_process import PluginProcess, PluginProcesses, Program
from lehr.plugins.terraform.provider import State
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.proposed import proposed_new
from lehr.plugins.terraform.wire.client import WireProvider
from lehr.plugins.terraform.wire.starting import Providers
from tests.terraform import aws
from tests.terraform.command import Terraform

AT_ONCE = 20
TURNS = 400
TYPE = "aws_ssm_parameter"
PEER = "terraform"
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
            for name, changed in (("create", 0), ("no change", 0), ("one changed", 1)):
                at = processes.used()
                intended = [written(number, "2" if number < changed else "1") for number in range(size)]
                states = await turns(provider, states, intended)
                found[name] = processes.used() - at
            block = provider.schema.resources[TYPE].block
            config = configured(block, written(size - 1))[0]

            async def plan_only(_number: int) -> None:
                state = states[-1]
                await provider.validate_resource(TYPE, config)
                await provider.plan(TYPE, state, proposed_new(block, state.value, config), config)

            started = time.monotonic()
            await each(plan_only, TURNS)
            found["plans"] = TURNS / (time.monotonic() - started)
            started = time.monotonic()
            await each(lambda n: turn(provider, states[-1], written(size - 1)), TURNS)
            found["turns"] = TURNS / (time.monotonic() - started)
        finally:
            await provider.close()
    return found


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
    peers = theirs(size) if shutil.which("terraform") else {}
    figures.report("provider started and configured, processor", mine["start"], "s", 1)
    for name in ("create", "no change", "one changed"):
        peer = figures.Peer(PEER, peers[name]) if name in peers else None
        figures.report(f"parameters, {name}, processor", mine[name], "s", size, peer=peer)
    figures.report("turns of one provider with its API, at 20 at once", mine["turns"], "turns/s", TURNS)
    figures.report("validations and plans of one provider, at 20 at once", mine["plans"], "plans/s", TURNS)


if __name__ == "__main__":
    main()
