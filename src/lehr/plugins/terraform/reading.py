"""Reads a resource or data source as intent has it: its payload, its provider, outputs and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lehr.base.errors import StalledError, WaitingError
from lehr.model.asset import AssetId
from lehr.model.diff import Goal, Target
from lehr.model.secret import Secret
from lehr.plugins.terraform.intent import Intended
from lehr.plugins.terraform.payload import (
    TERRAFORM_DATA,
    TerraformData,
    TerraformProvider,
    TerraformResource,
)
from lehr.plugins.terraform.provider import UNKNOWN
from lehr.sdk.plugin import Reader
from lehr.sdk.secrets import Secrets, SecretValue


async def intended(target: Target, read: Reader, secrets: Secrets) -> Intended:
    """The resource or data source of `target`, as intent has it.

    One that should go is also understood without outputs and secrets that are not there: these may be gone.

    Raises:
        LehrError: something is missing or not known yet.
    """
    payload: TerraformData | TerraformResource
    if target.type == TERRAFORM_DATA:
        payload = read.payload(target.id, TerraformData)
    else:
        payload = read.payload(target.id, TerraformResource)
    if target.goal not in (Goal.PRESENT, Goal.ABSENT):
        raise StalledError(
            f"a {target.type} cannot be {target.goal}",
            code="TER123",
            fix="use a turndown, which destroys it",
        )
    provider = read.payload(AssetId(payload.provider), TerraformProvider)
    absent = target.goal is Goal.ABSENT
    outputs: dict[str, Any] = {}
    for name, reference in payload.references.items():
        try:
            outputs[name] = read.output(AssetId(reference.asset), reference.output)
        except WaitingError:
            if not absent:
                raise
            outputs[name] = UNKNOWN
    known = await revealed(payload.secrets, secrets, lenient=absent)
    return Intended(payload, provider, outputs, known, await revealed(provider.secrets, secrets))


async def revealed(
    references: Mapping[str, Secret], secrets: Secrets, *, lenient: bool = False
) -> dict[str, SecretValue]:
    """The values of secrets, by name; with `lenient`, without those that do not exist.

    Raises:
        LehrError: one cannot be read.
    """
    known = {}
    for name, secret in references.items():
        try:
            known[name] = await secrets.read(secret)
        except StalledError:
            if not lenient:
                raise
    return known
