"""`hello`: the example of that name, from nothing, changed, partly turned down, partly let go."""

from __future__ import annotations

import functools

from lehr.model.asset import Partition
from lehr.testing.sim.plans.scenario import Drift, Editor, Scenario, workspace
from lehr.testing.sim.simulated_type import plain

_NOTICES = """\
id: notice/old
type: lehr.File
payload: {path: production/old.txt, content: "to be turned down"}
---
id: notice/foreign
type: lehr.File
payload: {path: production/foreign.txt, content: "to be let go"}
"""
_GOING = """\
id: notice/old
type: lehr.File
payload: {path: production/old.txt, content: "to be turned down"}
addons:
  lehr.Turndown: {reason: nobody reads it, stand_seconds: 5, fence_seconds: 5}
"""


@functools.cache
def hello() -> Scenario:
    """The scenario."""
    editor = Editor(workspace("hello"))
    editor.write("assets/notices.yaml", _NOTICES)
    steps = [editor.save("everything, from nothing")]
    editor.replace("sites/hello.yaml", "greeting: Hello, world", "greeting: Hello, all")
    editor.replace("sites/hello.yaml", "replicas: 2", "replicas: 3")
    steps.append(editor.save("another greeting, one more replica"))
    editor.write("assets/notices.yaml", _GOING)
    editor.replace("lehr.yaml", "partition: hello", "let_go: {notice/foreign: not ours}\npartition: hello")
    steps.append(editor.save("one notice is turned down, the other let go"))
    del editor.files["assets/notices.yaml"]
    gone = editor.save("the line of what was turned down is deleted")
    drift = Drift("an operator edits the page by hand", "hello/page", {"path": "elsewhere", "content": ""})
    return Scenario(
        "hello",
        Partition("hello"),
        (plain("lehr.File"), plain("lehr.Command"), plain("lehr.Process")),
        (*steps[:2], drift, steps[2], gone),
        ("lehr.yaml", "sites/hello.yaml", "assets/files.yaml"),
    )
