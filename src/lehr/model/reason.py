"""Reasons: why an asset has its status, why a check waits, why a write was refused."""

from __future__ import annotations

import enum
from typing import Self


class Reason(enum.StrEnum):
    """Every reason that Lehr itself gives.

    Fields that hold one are `str`, because checks of users give reasons of their own.
    `docs/reference/reasons.md` is generated from it.

    Attributes:
        meaning: what is the case, in one sentence.
        unblock: what to do about it; empty where nothing needs doing.
    """

    meaning: str
    unblock: str

    def __new__(cls, value: str, meaning: str = "", unblock: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        member.unblock = unblock
        return member

    ALLOWED = "Allowed", "The check has nothing against the push."
    APPROVAL_MISSING = (
        "ApprovalMissing",
        "The approval was used up or lifted while the push was being admitted.",
        "Approve the diff again: `lehr approve ASSET`.",
    )
    APPROVAL_NEEDED = (
        "ApprovalNeeded",
        "The push would destroy something that cannot be restored.",
        "Check the diff, then run `lehr approve ASSET`, or change the intent.",
    )
    AS_INTENDED = "AsIntended", "Production is as intended."
    AWAITING_RELEASE = (
        "AwaitingRelease",
        "Releases govern the asset, and newer content is not released to it.",
        "Wait until it is released.",
    )
    CAPACITY_ORDER = (
        "CapacityOrder",
        "Capacity must grow or shrink on another asset first.",
        "Wait until that asset is pushed.",
    )
    CHECK_FAILED = (
        "CheckFailed",
        "A check raised an error or took too long, so the push waits.",
        "Fix the check or its inputs; Lehr runs it again automatically.",
    )
    CLAIMED_ELSEWHERE = (
        "ClaimedElsewhere",
        "An asset of another partition holds what this asset would change.",
        "Claim something else, or turn the other asset down or let it go there (`lehr claims`).",
    )
    CLAIMED_HERE = (
        "ClaimedHere",
        "Another asset of this partition still holds what this asset would change.",
        "Wait until that asset is removed or gives up the claim, or claim something else.",
    )
    CONCURRENCY_LIMIT = (
        "ConcurrencyLimit",
        "The plugin already runs as many pushes as it allows.",
        "Wait until one of them finishes.",
    )
    CONTESTED = (
        "Contested",
        "Something else undoes each push after its verification, so Lehr pushes less and less often.",
        "Stop the other writer, then run `lehr retry ASSET`.",
    )
    CONTROLS_CHANGED = (
        "ControlsChanged",
        "A pause, freeze, pin, approval or override was set or lifted while the push was being admitted.",
        "Nothing: Lehr checks again automatically.",
    )
    DAMAGED = (
        "Damaged",
        "A record in the store does not match its checksum, or is missing.",
        "Repair it: `lehr store check` lists all damage.",
    )
    DEPENDENCY_BUSY = (
        "DependencyBusy",
        "An asset that this one depends on is being pushed.",
        "Nothing: Lehr checks again automatically.",
    )
    DEPENDENCY_CHANGED = (
        "DependencyChanged",
        "A new incarnation changed an asset that this one depends on.",
        "Nothing: Lehr checks again automatically.",
    )
    DEPENDENCY_DIFFERS = (
        "DependencyDiffers",
        "An asset that must be pushed first still differs from intent.",
        "Wait until it converges; see its own `lehr why`.",
    )
    DEPENDENCY_MISSING = (
        "DependencyMissing",
        "Intent does not have an asset that this one depends on.",
        "Declare the dependency, or remove it from the addon `lehr.DependsOn`.",
    )
    DEPENDENCY_UNREADABLE = (
        "DependencyUnreadable",
        "An asset that this one depends on cannot be compared with production.",
        "Fix what its own `lehr why` reports.",
    )
    DIFF_FAILED = (
        "DiffFailed",
        "The plugin could not compare the asset with production.",
        "Nothing at first: Lehr retries automatically. If it stays, fix the cause in the message.",
    )
    DIFF_STALLED = (
        "DiffStalled",
        "The plugin cannot compare the asset with production until something is fixed.",
        "Fix the cause in the message; Lehr checks again regularly.",
    )
    EXISTS = (
        "Exists",
        "An incarnation with the same name and other content was imported before.",
        "Import it with `--replace`, or keep the one that is there.",
    )
    FROZEN = (
        "Frozen",
        "A freeze in intent, or one set with `lehr freeze`, selects the asset.",
        "Wait until the freeze ends, remove the freeze from intent, or run `lehr unfreeze`.",
    )
    GOVERNANCE_CHANGED = (
        "GovernanceChanged",
        "A new incarnation changed checks, limits or freezes while the push was being admitted.",
        "Nothing: Lehr checks again automatically.",
    )
    IN_FLIGHT = (
        "InFlight",
        "A push of the same asset is under way.",
        "Wait until it finishes.",
    )
    LEASE_HELD = (
        "LeaseHeld",
        "Another process enforces the partition.",
        "Stop the other one, or leave the partition to it: this one takes over when it ends.",
    )
    LEASE_LOST = (
        "LeaseLost",
        "Another process took over the partition, so this one stopped writing.",
        "Stop one of the two processes.",
    )
    LET_GO = "LetGo", "Intent let the asset go; it stays in production without Lehr."
    LIMIT_REACHED = (
        "LimitReached",
        "No share of a limit was left when the push asked for admission.",
        "Wait, or raise the limit.",
    )
    MONITOR_HOLDS = (
        "MonitorHolds",
        "A monitor's query is out of bounds, its alert fires, or that has ended only just now.",
        "Wait until it is good again, or change the monitor.",
    )
    MONITOR_UNKNOWN = (
        "MonitorUnknown",
        "The source of a monitor gives no usable answer, or only an old one.",
        "Make the source answer, or change the monitor.",
    )
    MUTUAL_BLOCK = (
        "MutualBlock",
        "Assets wait for each other in a cycle.",
        "Change one of the dependencies, or what one of the changes does.",
    )
    NO_PLUGIN = (
        "NoPlugin",
        "No plugin serves the asset's type.",
        "Install a plugin for this type.",
    )
    OBSERVE_ONLY = (
        "ObserveOnly",
        "The asset differs, and a `lehr.ObserveOnly` asset keeps Lehr from pushing it.",
        "Remove the `lehr.ObserveOnly` asset from intent.",
    )
    OUTCOME_UNKNOWN = (
        "OutcomeUnknown",
        "Lehr does not know yet how a push ended, and starts no other until it does.",
        "Make production reachable for the plugin; `lehr why ASSET` names what is missing.",
    )
    OUTPUT_UNKNOWN = (
        "OutputUnknown",
        "The asset needs an output of another asset, and production does not have it yet.",
        "Wait until that asset is pushed; see its own `lehr why`.",
    )
    OUTSIDE_WINDOW = (
        "OutsideWindow",
        "The calendar that selects the asset is closed now.",
        "Wait for the next window, or run `lehr override` where the calendar allows it.",
    )
    OVERRIDDEN = "Overridden", "The calendar is closed, but an emergency override allows the push."
    OVERTAKEN = (
        "Overtaken",
        "A newer incarnation has been published since.",
        "Nothing: Lehr continues with the newer one.",
    )
    PAUSED = "Paused", "The asset is paused.", "Run `lehr resume`."
    PINNED = "Pinned", "Production matches the pinned incarnation.", "Run `lehr unpin` to end the pin."
    PINNED_TO_NOTHING = (
        "PinnedToNothing",
        "The incarnation that the asset is pinned to does not have it.",
        "Run `lehr unpin`, or pin the asset to another incarnation.",
    )
    PROTECTED_PATH = (
        "ProtectedPath",
        "The asset would write to a protected path.",
        "Choose another path, or remove the symbolic link that leads there.",
    )
    PRUNED = (
        "Pruned",
        "The incarnation was pruned: its content is gone.",
        "Name one that is kept (`lehr get incarnations`).",
    )
    PROVIDER_BUSY = (
        "ProviderBusy",
        "As many pushes run as the `concurrency` of the asset's provider allows.",
        "Wait until one has ended, or raise `concurrency`.",
    )
    PUSHED_STILL_DIFFERENT = (
        "PushedStillDifferent",
        "A push succeeded, but the asset still differs.",
        "Run `lehr retry ASSET`, or change the intent.",
    )
    PUSH_FAILED = (
        "PushFailed",
        "A push failed for a cause that may be temporary.",
        "Nothing at first: Lehr retries automatically. If it stays, fix the cause in the message.",
    )
    PUSHING = "Pushing", "A push is under way.", "Wait until it finishes."
    PUSH_STALLED = (
        "PushStalled",
        "A push failed, and a retry would not help.",
        "Fix the cause, then run `lehr retry ASSET`, or change the intent.",
    )
    RATE_LIMITED = (
        "RateLimited",
        "As many pushes as the rate limit allows have started recently.",
        "Wait, or raise the limit.",
    )
    READS_CHANGED = (
        "ReadsChanged",
        "Another asset that this one reads, or an output of it, changed while the push was being admitted.",
        "Nothing: Lehr checks again automatically.",
    )
    RECOVERING = (
        "Recovering",
        "Production recovers without a push.",
        "Wait until it has recovered; Lehr keeps checking.",
    )
    RELEASES_CHANGED = (
        "ReleasesChanged",
        "A release of this asset, or of one that it depends on or reads, has changed in between.",
        "Nothing: Lehr checks again automatically.",
    )
    REMOVED = "Removed", "The asset was turned down and is removed from production."
    RETRY_BUDGET = (
        "RetryBudget",
        "The plugin's pushes were retried too often recently.",
        "Wait; retries are spread over time.",
    )
    RULE_NOT_MET = (
        "RuleNotMet",
        "The condition of a rule in `lehr.DependsOn` is false, or cannot be evaluated.",
        "Fix what the rule's message describes.",
    )
    STILL_REFERENCED = (
        "StillReferenced",
        "Other assets still refer to the one that is being turned down.",
        "Remove the references, or turn those assets down as well.",
    )
    STOPPING = "Stopping", "`lehr run` is stopping and starts no more pushes.", "Start `lehr run` again."
    STORE_UNAVAILABLE = (
        "StoreUnavailable",
        "The store cannot be read or written now.",
        "Fix the store; Lehr retries automatically.",
    )
    TOO_MANY_DEPENDENCIES = (
        "TooManyDependencies",
        "More assets must go before this one, directly or indirectly, than Lehr follows.",
        "Reduce the number of dependencies.",
    )
    TURN_BROKE = (
        "TurnBroke",
        "The asset's turn ended with an unexpected error: a defect in Lehr or in a plugin.",
        "Report it with the traceback in the log of `lehr run`; Lehr retries automatically.",
    )
    TURNDOWN_STANDS = (
        "TurndownStands",
        "The turndown waits for the time that its addon sets for this stage.",
        "Wait, or remove the addon to keep the asset.",
    )
    TURNDOWN_UNSUPPORTED = (
        "TurndownUnsupported",
        "The plugin cannot remove assets of this type.",
        "Remove the turndown addon, or let the asset go in `lehr.yaml` and remove it by hand.",
    )
    UNREADABLE = (
        "Unreadable",
        "Lehr cannot read what the asset's turn needs from the store.",
        "Fix the cause in the message; `lehr store check` lists all damage.",
    )
    VERSION_ORDER = (
        "VersionOrder",
        "Another asset must reach a version first, or must no longer need one.",
        "Wait until that asset is pushed.",
    )
