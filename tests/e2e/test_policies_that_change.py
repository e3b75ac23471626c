"""Given policies that change and make assets, production has what they say, and everybody can see why."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.bad_input.workspace import Workspace

PAGE = """\
name: shop.Page
enforced: false
schema: {type: object, properties: {title: {type: string}}, required: [title]}
"""
POLICIES = """\
id: policies/pages
type: lehr.Policy
payload:
  match: {select: {types: [shop.Page]}}
  generate:
    - name: file
      asset:
        id: "{{ id }}/file"
        type: lehr.File
        payload: {path: "FOLDER/{{ id }}", content: "{{ payload.title }}"}
---
id: policies/private
type: lehr.Policy
payload:
  match: {select: {types: [lehr.File]}}
  mutate:
    - name: mode
      default: {payload: {mode: "0600"}}
    - name: owner
      set: {addons: {lehr.Owner: {team: web}}}
"""


class Shop(Workspace):
    """Pages, a file for each, and a file that somebody has written."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.write("types/page.yaml", PAGE)
        self.policies("0600")
        self.page("a")
        self.declare("c", "lehr.File", {"path": str(self.production / "c"), "content": "c", "mode": "0644"})

    def policies(self, mode: str) -> None:
        self.write(
            "assets/policies.yaml", POLICIES.replace("FOLDER", str(self.production)).replace("0600", mode)
        )

    def page(self, id: str, **addons: object) -> None:
        self.declare(id, "shop.Page", {"title": f"page {id}"}, **addons)

    def published(self, message: str = "Change") -> None:
        self.commit(message)
        done = self.once()
        assert done.code == 0, done.err

    def mode(self, name: str) -> int:
        return (self.production / name).stat().st_mode & 0o777


def test_production_has_what_policies_make_and_put_and_the_next_commit_changes_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.published()
    assert (shop.production / "a").read_text() == "page a"
    assert [shop.mode(name) for name in "ac"] == [0o600, 0o644]

    shop.policies("0640")
    shop.published("Let our group read")
    assert [shop.mode(name) for name in "ac"] == [0o640, 0o644]

    said = " ".join(shop.lehr("blame", "a/file", "payload.mode").out.split())
    assert "set by assets/policies.yaml:policies/private/mode, line 18" in said
    assert 'default: {payload: {mode: "0640"}}' in said
    assert "Somebody <somebody@example.org>: Let our group read" in said
    assert "made by assets/policies.yaml:policies/pages/file, line 6" in said
    assert "from asset a" in said
    written = " ".join(shop.lehr("blame", "c", "payload.mode").out.split())
    assert "written at assets/c.json:1" in written
    assert "set by" not in written
    owner = shop.lehr("blame", "c", "addons.lehr.Owner.team", "-o", "json").out
    assert json.loads(owner)["field"]["written"] is None

    graph = shop.lehr("graph", str(shop.repository)).out
    assert "policies/pages/file:6" in graph
    assert "+/payload/mode (1)" in graph
    again = shop.lehr("validate", str(shop.repository), "--clean")
    assert "reproducible in two clean builds" in again.out + again.err


def test_what_a_policy_has_made_goes_by_turndown_alone(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page("b")
    shop.published()
    (shop.repository / "assets/b.json").unlink()
    shop.commit()
    shop.once().failed("VAL010", "`b/file` has disappeared without a turndown")
    assert (shop.production / "b").exists()

    shop.page("b", Turndown={"reason": "nobody reads it"})
    shop.published()
    assert not (shop.production / "b").exists()
    (shop.repository / "assets/b.json").unlink()
    shop.published()


def test_whatever_is_wrong_with_policies_is_told_at_once_where_it_stands(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.published()
    text = POLICIES.replace("FOLDER", str(shop.production))
    text = text.replace("{{ payload.title }}", "{{ payload. }}").replace("team: web", 'team: "{{ nobody }}"')
    shop.write(
        "assets/policies.yaml", text.replace("types: [lehr.File]}", "types: [lehr.File]}, where: '1 +'")
    )
    shop.commit()
    done = shop.once()
    done.failed("VAL062", "assets/policies.yaml:10", "assets/policies.yaml:15", "assets/policies.yaml:20")
    assert shop.mode("a") == 0o600
