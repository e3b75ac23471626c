"""Runs the workflows of switches with Temporal: python bin/temporal_worker.py [127.0.0.1:7233]"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    import steps


async def step(name: str, *arguments: str) -> None:
    await workflow.execute_activity(
        name,
        args=arguments,
        start_to_close_timeout=timedelta(seconds=90),
        retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=3),
    )


@workflow.defn
class UpdateFirmware:
    """Moves one switch to another version. Whatever happens, it gets its traffic back at the end."""

    @workflow.run
    async def run(self, argument: dict) -> None:
        address, version = argument["address"], argument["version"]
        await step("drain", address)
        try:
            await step("flash", address, version)
            await step("reboot", address)
            await step("verify", address, version)
        finally:
            await step("undrain", address)


@workflow.defn
class TakeOutOfService:
    """Leaves a switch without traffic."""

    @workflow.run
    async def run(self, argument: dict) -> None:
        await step("drain", argument["address"])


async def main() -> None:
    client = await Client.connect(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7233")
    activities = [steps.drain, steps.flash, steps.reboot, steps.verify, steps.undrain]
    with ThreadPoolExecutor(10) as threads:
        worker = Worker(
            client,
            task_queue="firmware",
            workflows=[UpdateFirmware, TakeOutOfService],
            activities=[activity.defn(function) for function in activities],
            activity_executor=threads,
        )
        print("The worker runs", flush=True)
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
