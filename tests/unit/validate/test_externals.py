"""What is named outside of intent is as fixed as intent itself."""

from __future__ import annotations

import pytest

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import AssetId, make_asset
from lehr.model.types import External
from tests.unit.validate.proposing import IMAGE, Image, check, missing, note

SHA256, COMMIT = "sha256:" + "ab" * 32, "0123456789abcdef" * 2 + "01234567"


def named(uri: str, digest: str | None = None) -> list[Diagnostic]:
    return check([], [make_asset(AssetId("i"), IMAGE, Image(External(uri, digest)), {})])


@pytest.mark.parametrize(
    "uri",
    [
        f"registry.shop.example/web@{SHA256}",
        f"git+https://git.shop.example/web@{COMMIT}",
        f"https://git.shop.example/web/raw/{COMMIT}/model.bin",
        f"git+ssh://git.shop.example/web?ref={COMMIT}",
        "s3://models/web.bin?versionId=3sL4kqtJlcpXroDTDmJ",
        "gs://models/web.bin?generation=1700000000",
    ],
)
def test_a_commit_a_version_or_a_digest_in_the_uri_will_do(uri: str) -> None:
    assert named(uri) == []


def test_with_a_digest_any_uri_will_do() -> None:
    assert named("http://shop.example/model.bin", SHA256) == []
    assert named("registry.shop.example/web:latest", "sha512:" + "0" * 128) == []


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("registry.shop.example/web:latest", "`latest`"),
        ("registry.shop.example/web:1.4", "a name or a tag can be moved"),
        ("git+https://git.shop.example/web@main", "`main`"),
        ("https://git.shop.example/web/raw/HEAD/model.bin", "`HEAD`"),
        ("git+https://git.shop.example/web@0123456", "nothing in it identifies a version"),
        (f"http://git.shop.example/web/raw/{COMMIT}/model.bin", "plain http"),
        (f"https://{COMMIT}.shop.example/model.bin", "nothing in it identifies a version"),
        ("s3://models/web.bin?versionId=null", "nothing in it identifies a version"),
        ("s3://models/web.bin?versionId=", "nothing in it identifies a version"),
        ("", "a URI is not empty"),
        ("https://shop.example/a b", "no spaces"),
        ("https://[shop/x", "it is not a URI"),
        ("registry.shop.example/web@md5:" + "0" * 32, "not a reliable digest algorithm"),
    ],
)
def test_what_can_change_is_refused(uri: str, why: str) -> None:
    (found,) = named(uri)
    assert (found.code, found.subject) == ("VAL040", "i")
    assert why in found.why


@pytest.mark.parametrize("digest", ["sha1:" + "0" * 40, "sha256:abc", "0" * 64, "sha256:" + "Z" * 64])
def test_a_digest_that_proves_nothing_is_refused(digest: str) -> None:
    assert [item.code for item in named("https://shop.example/model.bin", digest)] == ["VAL040"]


def test_a_uri_is_not_told_for_it_may_hold_a_password() -> None:
    found = named("https://app:hunter2" + "@shop.example/model.bin")
    assert [item.code for item in found] == ["VAL040", "VAL041"]
    assert not missing(found[0], "`/payload/main`", "`i`")
    assert "hunter2" not in str(found)


def test_all_that_an_asset_names_is_looked_at() -> None:
    others = [External("oci:web:latest"), External("oci:web", SHA256), External("oci:web:edge")]
    asset = make_asset(AssetId("i"), IMAGE, Image(External("oci:web", SHA256), others), {})
    assert len(check([], [asset])) == 2


def test_a_declared_type_says_which_fields_name_something_outside() -> None:
    assert check([], [note("n", artefact=f"oci:web@{SHA256}", other="oci:web:latest")]) == []
    assert [item.code for item in check([], [note("n", artefact="oci:web:latest")])] == ["VAL040"]
    layers = [{"uri": "oci:a:latest"}, {"uri": "oci:b", "digest": SHA256}, {"uri": "oci:c", "digest": 7}]
    assert [item.code for item in check([], [note("n", layers=layers)])] == ["VAL040"] * 2
