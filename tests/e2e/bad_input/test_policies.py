"""Given a policy, when intent does not hold to it, then nothing is published before it does."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.bad_input.workspace import Workspace

POLICY = """\
id: policies/modes
type: lehr.Policy
payload:
  match: {select: {types: [lehr.File]}}
  rules:
    - name: private
      require: payload.mode == 'MODE'
      message: "{{ id }} has mode {{ payload.mode }}"
    - name: paths
      unique: payload.path
      message: "{{ id }} and {{ other }} are one file"
"""


def declare(workspace: Workspace, id: str, mode: str = "0600") -> None:
    payload = {"path": str(workspace.production / id), "content": "x", "mode": mode}
    workspace.declare(id, "lehr.File", payload)


def test_what_breaks_a_policy_is_refused_until_it_holds_or_is_acknowledged(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.write("assets/policies.yaml", POLICY.replace("MODE", "0600"))
    declare(workspace, "a")
    workspace.commit()
    done = workspace.once()
    assert done.code == 0, done.err

    declare(workspace, "b", "0644")
    workspace.commit()
    workspace.once().failed(
        "VAL060", "b has mode 0644", "policy `policies/modes`, rule `private`", "VAL060, subject: b"
    )
    assert not (workspace.production / "b").exists()

    entry = "{code: VAL060, subject: b, after: shop@1, reason: it is public}"
    workspace.write("lehr.yaml", f"partition: shop\nacknowledge: [{entry}]\n")
    workspace.commit()
    done = workspace.once()
    assert done.code == 0, done.err
    assert (workspace.production / "b").exists()


def test_a_policy_that_changes_judges_what_has_long_been_published(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.write("assets/policies.yaml", POLICY.replace("MODE", "0600"))
    declare(workspace, "a")
    workspace.commit()
    done = workspace.once()
    assert done.code == 0, done.err

    workspace.write("assets/policies.yaml", POLICY.replace("MODE", "0640"))
    workspace.commit()
    workspace.once().failed("VAL060", "a has mode 0600")
