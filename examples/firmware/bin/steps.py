"""The steps of a firmware update. Each may be repeated at any time: engines repeat what failed."""

import json
import time
import urllib.error
import urllib.request

_BOOT_SECONDS = 60.0


def drain(address: str) -> None:
    """Send the traffic of the switch elsewhere."""
    _ask(address, "drain", {})


def flash(address: str, version: str) -> None:
    """Write the firmware, which runs after the next reboot."""
    _ask(address, "flash", {"version": version})


def reboot(address: str) -> None:
    """Restart the switch, and wait until it answers."""
    _ask(address, "reboot", {})
    deadline = time.monotonic() + _BOOT_SECONDS
    while True:
        try:
            _ask(address, "state")
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def verify(address: str, version: str) -> None:
    """Make sure that the switch runs the version."""
    found = _ask(address, "state")["version"]
    if found != version:
        raise ValueError(f"the switch runs {found} after the reboot, not {version}")


def undrain(address: str) -> None:
    """Give the switch its traffic back."""
    _ask(address, "undrain", {})


def _ask(address: str, action: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{address}/{action}", data=data)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())
