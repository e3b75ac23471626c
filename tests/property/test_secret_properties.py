"""Whatever is edited: references hold the digests of the files that there are, and no value is repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lehr.base.clock import SystemClock
from lehr.base.digest import digest_bytes
from lehr.generate.engine.build import Build
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.runs import Run
from lehr.generate.outcome.protocol import Changed, SandboxLimits
from lehr.model.asset import Asset, AssetId
from lehr.model.secret import Secret, reference_in, reference_problem
from lehr.model.types import AssetType, Registry
from lehr.sdk.secrets import HIDDEN, Hidden, SecretValue
from lehr.sdk.source import FileEntry

Files = dict[str, str]


class Account(msgspec.Struct, frozen=True):
    password: Secret | None = None
    variables: dict[str, str | Secret] = {}


class Worker:
    """Builds snapshots, and keeps the assets that its answers add up to."""

    def __init__(self) -> None:
        self.assets: dict[AssetId, Asset] = {}
        self._files: Files = {}
        registry = Registry([AssetType("test.Account", Account)])
        self._build = Build(registry, self._fetch, Run(SandboxLimits(), SystemClock()), Memo())

    def build(self, files: Files) -> None:
        before, self._files = self._files, files
        changed = [path for path in files if before.get(path) != files[path]]
        entries = [FileEntry(path, digest_bytes(files[path].encode()), len(files[path])) for path in changed]
        built = self._build.build(Changed(tuple(entries), tuple(before.keys() - files.keys())))
        assert not built.diagnostics, built.diagnostics
        self.assets.update((asset.id, asset) for asset in built.upserts)
        for id in built.removals:
            del self.assets[id]

    def _fetch(self, paths: list[str]) -> Iterator[bytes]:
        return (self._files[path].encode() for path in paths)


ENCRYPTED = ("a.age", "secrets/b.age", "c.yaml")
REFERENCES = st.sampled_from(("env:A", "age:a.age", "age:secrets/b.age#x", "sops:c.yaml#y.z"))
PASSWORDS = st.builds(lambda text: {"secret": text}, REFERENCES)
PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "password": PASSWORDS,
        "variables": st.dictionaries(
            st.sampled_from(("x", "secret", "a/b")), PASSWORDS | st.text("ab:é", max_size=3), max_size=2
        ),
    },
)


@st.composite
def snapshots(draw: st.DrawFn) -> Files:
    files = {"lehr.yaml": "partition: shop\n"}
    for id in draw(st.sets(st.sampled_from(("one", "two", "three")))):
        asset = {"id": id, "type": "test.Account", "payload": draw(PAYLOADS)}
        files[f"assets/{id}.json"] = msgspec.json.encode(asset).decode()
    for path in draw(st.sets(st.sampled_from(ENCRYPTED))):
        files[path] = draw(st.sampled_from(("cipher 1", "cipher 2")))
    files["assets/always.json"] = '{"id": "always", "type": "test.Account"}'
    return files


def expected(files: Mapping[str, str], secret: Secret) -> str | None:
    content = files.get(secret.place) if secret.backend.encrypted else None
    return None if content is None else digest_bytes(content.encode())


@settings(max_examples=40)
@given(history=st.lists(snapshots(), min_size=1, max_size=6))
def test_an_incremental_build_equals_a_clean_one_with_the_digests_of_what_is_there(
    history: list[Files],
) -> None:
    registry = Registry([AssetType("test.Account", Account)])
    incremental = Worker()
    for files in history:
        incremental.build(files)
        clean = Worker()
        clean.build(files)
        assert incremental.assets == clean.assets
        for asset in clean.assets.values():
            for place, secret in registry.secrets(asset):
                assert secret.digest == expected(files, secret), place


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NEARLY = st.dictionaries(
    st.sampled_from(("secret", "version", "digest", "other")), st.text() | JSON, min_size=1
)


@given(value=JSON | NEARLY)
def test_what_is_no_reference_is_told_apart_as_its_type_does(value: object) -> None:
    try:
        secret = msgspec.convert(value, Secret)
    except msgspec.ValidationError:
        assert reference_problem(value) is not None
        assert reference_in(value) is None
    else:
        assert reference_in(value) == secret


@given(scheme=st.sampled_from(("", "env:", "file:", "age:", "sops:")), hidden=st.text("xyz$%/#.", min_size=1))
def test_why_a_text_is_no_reference_never_depends_on_what_it_says(scheme: str, hidden: str) -> None:
    marked = f"{scheme}canary {hidden}\n"
    assert "canary" not in str(reference_problem({"secret": marked}))


@given(
    secrets=st.lists(st.text("abc ", min_size=4, max_size=8), min_size=1, max_size=3),
    parts=st.lists(st.text("abc -", max_size=6) | st.integers(0, 2), max_size=8),
)
def test_output_without_secrets_holds_none(secrets: list[str], parts: list[str | int]) -> None:
    values = [SecretValue(text.encode()) for text in secrets]
    texts = [secrets[part % len(secrets)] if isinstance(part, int) else part for part in parts]
    shown = Hidden(values).shown("".join(texts))
    assert not any(secret in shown.replace(HIDDEN, "\n") for secret in secrets)
