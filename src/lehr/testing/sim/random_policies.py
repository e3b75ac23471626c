"""Rollout policies of a random history: the real Strategist carries them out."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.checks.monitor import Monitor
from lehr.control.messages import CommandRollout
from lehr.model.asset import AssetId, make_asset
from lehr.model.evidence import RolloutCommand
from lehr.model.governance import ROLLOUT_POLICY
from lehr.rollouts.policy import RolloutPolicy
from lehr.testing.sim import rollout_liveness, selectors
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.metrics import SOURCE, Answers
from lehr.testing.sim.random_harness import RandomHarness

_SALT = 0x9011C7
"""Makes other dice of a history's seed."""

_OTHER_SALT = 0x7205
"""The same, for what was added later: recorded seeds stay what they are."""

SHARE = 0.1
"""How many histories have a policy."""

_POLICY = AssetId("policy-1")
_MONITOR = AssetId("monitor-1")
_PATIENCE = 60
"""Tries to get an edit published, a second apart."""


class RandomPolicies:
    """Declares a policy, changes it, takes it out, and gives commands, until the end, when there is none.

    In some histories, a monitor holds pushes. Its dice are its own: histories without it stay as they are.

    Attributes:
        active: whether this history has any.
    """

    def __init__(self, harness: RandomHarness, share: float = SHARE) -> None:
        """Those of the history of `harness`; `share` is how likely it has any."""
        self._dice = dice = Dice(harness.seed ^ _SALT)
        self.active = dice.happens(share)
        self._monitored = dice.happens(0.4)
        self._other_dice = Dice(harness.seed ^ _OTHER_SALT)
        self._trust_for = self._other_dice.pick((0.0, 0.0, 10.0, 3600.0))
        self._hurried = self._other_dice.happens(0.4)

    async def happen(self, harness: RandomHarness) -> None:
        """Perhaps change the policy or the monitor, or give a command."""
        dice = self._dice
        if not self.active:
            return
        if self._monitored:
            self._monitor(harness)
        if not dice.happens(0.3):
            return
        declared = _POLICY in harness.intent.governing.assets
        if not declared or dice.happens(0.2):
            self._declare(harness)
        elif dice.happens(0.1):
            del harness.intent.governing.assets[_POLICY]
            harness.edit()
        else:
            action = dice.pick(tuple(RolloutCommand))
            request = CommandRollout(action=action, policy=_POLICY, reason="because")
            await harness.alive(lambda harness: harness.command(request))

    async def end(self, harness: RandomHarness) -> None:
        """Let its rollouts end; then take the policy out, and wait until that is published."""
        if not self.active:
            return
        if _POLICY in harness.intent.governing.assets and not harness.broken():
            await rollout_liveness.come_to_an_end(harness, _POLICY)
        harness.metrics.answers = Answers.GOOD
        for _ in range(_PATIENCE):
            if harness.intent.governing.assets.pop(_POLICY, None) is not None:
                harness.edit()
            if _POLICY not in harness.witness.assets():
                return
            harness.process.store.out_of_order = False
            await harness.alive(lambda harness: harness.process.pass_time(1.0))
            harness.edit()

    def _declare(self, harness: RandomHarness) -> None:
        fields = self._payload()
        newest = max(harness.witness.incarnations, default=0)
        if newest and self._hurried and self._other_dice.happens(0.4):
            fields["emergency"] = self._emergency(newest)
        payload = msgspec.convert(fields, RolloutPolicy)
        harness.intent.governing.assets[_POLICY] = make_asset(_POLICY, ROLLOUT_POLICY, payload, {})
        harness.edit()

    def _payload(self) -> dict[str, Any]:
        dice = self._dice
        first = {"units": dice.number(1, 2), "soak_seconds": dice.pick((0.0, 5.0, 30.0))}
        selection: dict[str, Any] = {"waves": [first, {}] if dice.happens(0.8) else [{}]}
        if dice.happens(0.5):
            selection["at_most"] = dice.pick((1, 1, 2, "25%", "50%"))
        validation = {"look_every": dice.pick((2.0, 10.0)), "bad_looks": dice.number(1, 3), "deadline": 60.0}
        return {
            "select": selectors.some(dice, IDS),
            "unit": dice.pick(("", "team", "team", "tier")),
            "target_selection": selection,
            "validation": validation | {"at_deadline": dice.pick(("fail", "hold"))},
            "on_failure": dice.pick(("rollback", "rollback", "hold")),
            "trust_for": self._trust_for,
        }

    def _emergency(self, newest: int) -> dict[str, Any]:
        dice = self._other_dice
        target = max(1, newest - dice.number(0, 1))
        selection = {"waves": [{}], "at_most": dice.pick((1, "50%", "100%"))}
        until = dice.pick(("2026-01-05T00:01:00Z", "2099-01-01T00:00:00Z"))
        return {"target": target, "reason": "because", "until": until, "target_selection": selection}

    # --- the monitor ------------------------------------------------------------------------

    def _monitor(self, harness: RandomHarness) -> None:
        """Perhaps declare it, take it out, or let its source answer otherwise."""
        dice, assets = self._dice, harness.intent.governing.assets
        if dice.happens(0.2):
            harness.metrics.answers = dice.pick((*Answers, Answers.GOOD, Answers.GOOD, Answers.GOOD))
            harness.fault(f"metrics are {harness.metrics.answers}")
        if not dice.happens(0.1):
            return
        if assets.pop(_MONITOR, None) is None:
            select = selectors.some(dice, IDS)
            fields = {"select": select, "source": SOURCE, "query": "errors", "at_most": 0.1}
            times = {"every": 5.0, "fresh": dice.pick((20.0, 120.0)), "steady": dice.number(1, 3)}
            payload = msgspec.convert(fields | times, Monitor)
            assets[_MONITOR] = make_asset(_MONITOR, "lehr.Monitor", payload, {})
        harness.edit()
