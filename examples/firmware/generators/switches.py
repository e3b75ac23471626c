"""From the list of switches to one workflow for each: what it must run, and what moves it there."""

from collections.abc import Iterator

from lehr.sdk.generator import SourceFile, Yielded, asset, for_each_file


@for_each_file("switches.yaml")
def switches(file: SourceFile) -> Iterator[Yielded]:
    declared = file.yaml()
    for name, switch in declared["switches"].items():
        address = switch["address"]
        payload = {
            "intended": {"version": switch.get("firmware", declared["firmware"]), "serving": True},
            "observe": {"http": {"url": f"http://{address}/state"}},
            "engine": declared["engine"],
            "workflow": "UpdateFirmware",
            "input": {"address": address},
            "timeout_seconds": 1800,
            "version": "/version",
            "disruptive": True,
            "remove": {"workflow": "TakeOutOfService", "intended": {"serving": False}},
        }
        addons = {"lehr.Labels": {"labels": {"switch": name}}}
        if "retired" in switch:
            addons["lehr.Turndown"] = {"reason": switch["retired"], "fence_seconds": 0}
        yield asset(f"switches/{name}", "lehr.Workflow", payload, addons)
