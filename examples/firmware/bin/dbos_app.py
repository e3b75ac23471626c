"""Runs the workflows of switches with DBOS: python bin/dbos_app.py [sqlite:///firmware.sqlite]"""

import sys
import threading

import steps
from dbos import DBOS

DBOS(
    config={
        "name": "firmware",
        "system_database_url": sys.argv[1] if len(sys.argv) > 1 else "sqlite:///firmware.sqlite",
        "application_version": "1",
        "run_admin_server": False,
    }
)

RETRIES = {"retries_allowed": True, "max_attempts": 3, "interval_seconds": 0.2}
drain, flash = DBOS.step(**RETRIES)(steps.drain), DBOS.step(**RETRIES)(steps.flash)
reboot, verify = DBOS.step(**RETRIES)(steps.reboot), DBOS.step(**RETRIES)(steps.verify)
undrain = DBOS.step(**RETRIES)(steps.undrain)


@DBOS.workflow(name="UpdateFirmware")
def update_firmware(argument: dict) -> None:
    """Moves one switch to another version. Whatever happens, it gets its traffic back at the end."""
    address, version = argument["address"], argument["version"]
    drain(address)
    try:
        flash(address, version)
        reboot(address)
        verify(address, version)
    finally:
        undrain(address)


@DBOS.workflow(name="TakeOutOfService")
def take_out_of_service(argument: dict) -> None:
    """Leaves a switch without traffic."""
    drain(argument["address"])


if __name__ == "__main__":
    DBOS.launch()
    DBOS.register_queue("firmware", polling_interval_sec=0.2)
    print("The worker runs", flush=True)
    threading.Event().wait()
