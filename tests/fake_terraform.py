"""A program that behaves as `terraform` does, for one kind of module: `terraform_data` in `main.tf.json`.

It has a state file with lineage and serial, a lock, plan files that become stale, and JSON output. Values are
literals or `${var.NAME}`, in objects of one level. The file that FAKE_TERRAFORM names makes it misbehave:

    {"hang": "plan"}          the command waits for ever; `deaf` as well, also when it is interrupted
    {"die": "apply"}          SIGKILL, after the first resource was written to the state
    {"slow": 2}               `apply` takes that many seconds
    {"print": ["show", "x"]}  the command prints this, and ends well
    {"refuse": "text"}        every `apply` of a resource fails with this error
    {"unsaved": true}         `apply` cannot save the state, and writes errored.tfstate
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any, NoReturn

Options = dict[str, str]
State = dict[str, Any]

VERSION = "1.9.0"
DATA = os.environ.get("TF_DATA_DIR", ".terraform")
WORKSPACE = os.environ.get("TF_WORKSPACE", "default")


def control() -> dict[str, Any]:
    try:
        with open(os.environ["FAKE_TERRAFORM"]) as file:
            found: dict[str, Any] = json.load(file)
            return found
    except (KeyError, OSError):
        return {}


def emit(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say(kind: str, message: str, **more: Any) -> None:
    emit(json.dumps({"@level": "info", "@message": message, "type": kind, **more}))


def fail(summary: str, detail: str = "", as_json: bool = True, **more: Any) -> NoReturn:
    if as_json:
        found = {"severity": "error", "summary": summary, "detail": detail, **more}
        say("diagnostic", f"Error: {summary}", diagnostic=found)
    else:
        place = f"  on {more['range']['filename']} line 1:\n  1: {{\n\n" if "range" in more else ""
        sys.stderr.write(f"\nError: {summary}\n\n{place}{detail}\n")
    raise SystemExit(1)


class Module:
    def __init__(self, options: Options, as_json: bool = True) -> None:
        try:
            with open("main.tf.json") as file:
                document = json.load(file)
        except (OSError, ValueError) as error:
            fail(
                "Invalid JSON", str(error), as_json, range={"filename": "main.tf.json", "start": {"line": 1}}
            )
        self.variables = document.get("variable", {})
        self.resources = document.get("resource", {}).get("terraform_data", {})
        self.outputs = document.get("output", {})
        self.local = document.get("terraform", {}).get("backend", {}).get("local")
        given = {name.removeprefix("TF_VAR_"): value for name, value in os.environ.items()}
        self.values = {name: given.get(name, item.get("default")) for name, item in self.variables.items()}
        if "var-file" in options:
            with open(options["var-file"]) as file:
                self.values |= {k: v for k, v in json.load(file).items() if k in self.variables}

    def value(self, text: Any, state: State) -> tuple[Any, bool]:
        """A value, and whether it is sensitive."""
        if isinstance(text, str) and text.startswith("${var."):
            name = text[6:-1]
            if self.values.get(name) is None:
                place = {"filename": "main.tf.json", "start": {"line": 1}}
                fail("No value for required variable", f'The variable "{name}" is not set.', range=place)
            return self.values[name], bool(self.variables[name].get("sensitive"))
        if isinstance(text, str) and text.startswith("${terraform_data."):
            name = text.split(".")[1]
            found = state["resources"].get(name)
            return found["id"] if found else None, False
        return text, False

    def input(self, name: str) -> tuple[dict[str, Any], dict[str, bool]]:
        found = {key: self.value(text, {}) for key, text in self.resources[name]["input"].items()}
        return {key: item[0] for key, item in found.items()}, {k: True for k, i in found.items() if i[1]}


def settings() -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError), open(f"{DATA}/terraform.tfstate") as file:
        found: dict[str, Any] = json.load(file)["backend"]["config"]
        return found
    return {}


def state_path() -> str:
    config = settings()
    if WORKSPACE != "default":
        return f"{config.get('workspace_dir') or 'terraform.tfstate.d'}/{WORKSPACE}/terraform.tfstate"
    return config.get("path") or "terraform.tfstate"


def read_state() -> State | None:
    """As `{"lineage", "serial", "resources": {name: attributes}, "outputs"}`; None for none."""
    try:
        with open(state_path()) as file:
            text = file.read()
    except FileNotFoundError:
        return None
    if not text:
        return None
    try:
        document = json.loads(text)
        attributes = {r["name"]: r["instances"][0]["attributes"] for r in document["resources"]}
        resources = {
            name: {"id": item["id"], "input": item["input"]["value"], "output": item["output"]["value"]}
            for name, item in attributes.items()
        }
        return {**document, "resources": resources}
    except (ValueError, KeyError, TypeError) as error:
        fail("Failed to load state", f"Unsupported state file format: {error}")


def typed(value: dict[str, Any]) -> dict[str, Any]:
    return {"value": value, "type": ["object", dict.fromkeys(value, "string")]}


def state_text(state: State) -> str:
    resources = [
        {
            "mode": "managed",
            "type": "terraform_data",
            "name": name,
            "instances": [
                {
                    "attributes": {
                        "id": item["id"],
                        "input": typed(item["input"]),
                        "output": typed(item["output"]),
                    }
                }
            ],
        }
        for name, item in sorted(state["resources"].items())
    ]
    return json.dumps({**state, "version": 4, "resources": resources}, indent=1)


def write_state(state: State) -> None:
    state["serial"] += 1
    path = state_path()
    if control().get("unsaved"):
        with open("errored.tfstate", "w") as file:
            file.write(state_text(state))
        fail("Failed to persist state to backend", "The state was written to errored.tfstate.")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + ".new", "w") as file:
        file.write(state_text(state))
    os.replace(path + ".new", path)


@contextlib.contextmanager
def locked(operation: str, options: Options) -> Iterator[None]:
    """The lock of the state, with a file that names its holder."""
    path = state_path()
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    info = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.lock.info")
    deadline = time.monotonic() + int(options.get("lock-timeout", "0s").removesuffix("s"))
    lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT)
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
        with contextlib.suppress(OSError), open(info) as file:
            fail("Error acquiring the state lock", "Error message: unavailable\nLock Info:\n" + file.read())
    with open(info, "w") as file:
        file.write(
            f"  ID:        4711\n  Path:      {path}\n  Operation: OperationType{operation}\n"
            "  Who:       alice@laptop\n  Version:   1.9.0\n  Created:   2026-11-27 09:20:03.142 +0000 UTC\n"
        )
    try:
        yield
    finally:
        os.unlink(info)
        os.close(lock)


def init(options: Options, arguments: list[str]) -> None:
    module = Module(options, as_json=False)
    os.makedirs(DATA, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{DATA}/terraform.tfstate")
    if module.local is not None:
        given = [item.split("=", 1) for item in arguments if item.startswith("-backend-config=")]
        config = {**module.local, **dict(item[1].split("=", 1) for item in given)}
        with open(f"{DATA}/terraform.tfstate", "w") as file:
            json.dump({"version": 3, "backend": {"type": "local", "config": config}}, file)
    with open(f"{DATA}/initialised", "w") as file:
        file.write(json.dumps(module.local))
    emit("Terraform has been successfully initialized!")


def require_init(module: Module) -> None:
    with contextlib.suppress(OSError), open(f"{DATA}/initialised") as file:
        if json.load(file) == module.local:
            return
    fail('Backend initialization required, please run "terraform init"', "Reason: it is another one")


def plan(options: Options, arguments: list[str]) -> None:
    module = Module(options)
    require_init(module)
    with locked("Plan", options):
        state = read_state() or {"lineage": "", "serial": 0, "resources": {}, "outputs": {}}
        destroy = "-destroy" in arguments
        changes, resources = [], {}
        for name in sorted({*state["resources"], *module.resources}):
            before = state["resources"].get(name)
            gone = destroy or name not in module.resources
            if gone and before is None:
                continue
            after, secret = (None, {}) if gone else module.input(name)
            marks = {"input": secret} if secret else False
            actions = (
                *(["create"] if before is None and not gone else []),
                *(["delete"] if before is not None and gone else []),
                *(["update" if before["input"] != after else "no-op"] if before and not gone else []),
            )
            change = {
                "actions": list(actions),
                "before": before,
                "after": None if gone else {"input": after, **({"id": before["id"]} if before else {})},
                "after_unknown": {} if gone or before else {"id": True, "output": True},
                "before_sensitive": marks if before else False,
                "after_sensitive": marks,
            }
            if actions == ("no-op",):
                change["after"] = before
            changes.append(
                {"address": f"terraform_data.{name}", "mode": "managed", "name": name, "change": change}
            )
            if not gone:
                resources[name] = after
        outputs = planned_outputs(module, state, destroy)
        say("change_summary", "Plan")
    differs = any(item["change"]["actions"] != ["no-op"] for item in [*changes, *outputs_as_changes(outputs)])
    document = {
        "format_version": "1.2",
        "resource_changes": changes,
        "output_changes": outputs,
        "configuration": {
            "root_module": {
                "variables": {
                    k: {"sensitive": bool(v.get("sensitive"))} for k, v in module.variables.items()
                },
                "outputs": {name: {} for name in module.outputs},
            }
        },
    }
    with open(options["out"], "w") as file:
        # A real plan file holds all this as well.
        json.dump(
            {
                "plan": document,
                "based_on": [state["lineage"], state["serial"]],
                "resources": resources,
                "outputs": module.outputs if not destroy else {},
                "values": module.values,
            },
            file,
        )
    raise SystemExit(2 if differs else 0)


def outputs_as_changes(outputs: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"change": item} for item in outputs.values()]


def planned_outputs(module: Module, state: State, destroy: bool) -> dict[str, Any]:
    found = {}
    for name in sorted({*state["outputs"], *module.outputs}):
        before = state["outputs"].get(name, {}).get("value")
        secret = bool(module.outputs.get(name, {}).get("sensitive"))
        after, _ = (
            (None, False)
            if destroy or name not in module.outputs
            else module.value(module.outputs[name]["value"], state)
        )
        unknown = not destroy and after is None
        action = "create" if before is None else "delete" if after is None and not unknown else "update"
        if before == after and not unknown:
            action = "no-op"
        if before is None and name not in (() if destroy else module.outputs):
            continue
        found[name] = {
            "actions": [action],
            "before": before,
            "after": after,
            "after_unknown": unknown,
            "before_sensitive": secret,
            "after_sensitive": secret,
        }
    return found


def show(options: Options, arguments: list[str]) -> None:
    with open(arguments[-1]) as file:
        emit(json.dumps(json.load(file)["plan"]))


def state_pull(options: Options, arguments: list[str]) -> None:
    state = read_state()
    if state is not None:
        emit(state_text(state))


def apply(options: Options, arguments: list[str]) -> None:
    with open(arguments[-1]) as file:
        planned = json.load(file)
    interrupted = []
    signal.signal(signal.SIGINT, lambda *_: interrupted.append(1))
    with locked("Apply", options):
        state = read_state() or {"lineage": "", "serial": 0, "resources": {}, "outputs": {}}
        if planned["based_on"] != [state["lineage"], state["serial"]]:
            fail(
                "Saved plan is stale",
                "The state was changed by another operation after the plan was created.",
            )
        state["lineage"] = state["lineage"] or str(uuid.uuid4())
        misbehaviour = control()
        for name in sorted({*state["resources"], *planned["resources"]}):
            after, before = planned["resources"].get(name), state["resources"].get(name)
            if before and before["input"] == after:
                continue
            resource = {"addr": f"terraform_data.{name}"}
            action = "delete" if after is None else "update" if before else "create"
            say("apply_start", f"{name}: ...", hook={"resource": resource, "action": action})
            deadline = time.monotonic() + misbehaviour.get("slow", 0)
            while time.monotonic() < deadline and not interrupted:
                time.sleep(0.02)
            if interrupted:
                fail("execution halted")
            if text := misbehaviour.get("refuse"):
                place = {"filename": "main.tf.json", "start": {"line": 1}}
                fail("creating Lamp", text, address=resource["addr"], range=place)
            if after is None:
                del state["resources"][name]
            else:
                state["resources"][name] = {"id": before["id"] if before else str(uuid.uuid4())}
                state["resources"][name] |= {"input": after, "output": after}
            write_state(state)
            if misbehaviour.get("die") == "apply":
                os.kill(os.getpid(), signal.SIGKILL)
            say(
                "apply_complete",
                f"{name}: done",
                hook={"resource": resource, "action": action, "elapsed_seconds": 0},
            )
        module = Module({})
        module.values = planned["values"]
        values = {name: module.value(item["value"], state)[0] for name, item in planned["outputs"].items()}
        state["outputs"] = {name: {"value": value} for name, value in values.items() if value is not None}
        write_state(state)


def version(options: Options, arguments: list[str]) -> None:
    emit(json.dumps({"terraform_version": control().get("version", VERSION), "platform": "linux_amd64"}))


def main() -> None:
    arguments = sys.argv[1:]
    command = "state_pull" if arguments[:2] == ["state", "pull"] else arguments[0]
    options = dict(item[1:].split("=", 1) for item in arguments if item.startswith("-") and "=" in item)
    misbehaviour = control()
    if log := misbehaviour.get("log"):
        with open(log, "a") as file:
            file.write(json.dumps([command, arguments, dict(os.environ)]) + "\n")
    if command in (misbehaviour.get("hang"), misbehaviour.get("deaf")):
        if command == misbehaviour.get("deaf"):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        time.sleep(600)
    if misbehaviour.get("print", [""])[0] == command:
        emit(misbehaviour["print"][1])
        return
    globals()[command](options, arguments)


if __name__ == "__main__":
    main()
