from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Fencing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FENCING_UNSPECIFIED: _ClassVar[Fencing]
    FENCING_NONE: _ClassVar[Fencing]
    FENCING_NATIVE: _ClassVar[Fencing]
    FENCING_COMPARE_AND_SWAP: _ClassVar[Fencing]

class Goal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GOAL_UNSPECIFIED: _ClassVar[Goal]
    GOAL_PRESENT: _ClassVar[Goal]
    GOAL_DRAINED: _ClassVar[Goal]
    GOAL_FENCED: _ClassVar[Goal]
    GOAL_ABSENT: _ClassVar[Goal]
FENCING_UNSPECIFIED: Fencing
FENCING_NONE: Fencing
FENCING_NATIVE: Fencing
FENCING_COMPARE_AND_SWAP: Fencing
GOAL_UNSPECIFIED: Goal
GOAL_PRESENT: Goal
GOAL_DRAINED: Goal
GOAL_FENCED: Goal
GOAL_ABSENT: Goal

class DescribeRequest(_message.Message):
    __slots__ = ("host_version",)
    HOST_VERSION_FIELD_NUMBER: _ClassVar[int]
    host_version: str
    def __init__(self, host_version: _Optional[str] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("name", "version", "types", "traits", "checks", "selections", "trouble", "validators")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    TRAITS_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    SELECTIONS_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    VALIDATORS_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    types: _containers.RepeatedCompositeFieldContainer[AssetType]
    traits: Traits
    checks: _containers.RepeatedScalarFieldContainer[str]
    selections: _containers.RepeatedScalarFieldContainer[str]
    trouble: Trouble
    validators: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., types: _Optional[_Iterable[_Union[AssetType, _Mapping]]] = ..., traits: _Optional[_Union[Traits, _Mapping]] = ..., checks: _Optional[_Iterable[str]] = ..., selections: _Optional[_Iterable[str]] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ..., validators: _Optional[_Iterable[str]] = ...) -> None: ...

class AssetType(_message.Message):
    __slots__ = ("name", "version", "description", "schema", "references", "stable_outputs", "changing_outputs", "secrets")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REFERENCES_FIELD_NUMBER: _ClassVar[int]
    STABLE_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    CHANGING_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    description: str
    schema: bytes
    references: bytes
    stable_outputs: _containers.RepeatedScalarFieldContainer[str]
    changing_outputs: _containers.RepeatedScalarFieldContainer[str]
    secrets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., description: _Optional[str] = ..., schema: _Optional[bytes] = ..., references: _Optional[bytes] = ..., stable_outputs: _Optional[_Iterable[str]] = ..., changing_outputs: _Optional[_Iterable[str]] = ..., secrets: _Optional[_Iterable[str]] = ...) -> None: ...

class Traits(_message.Message):
    __slots__ = ("fencing", "goals", "turns", "pushes", "diff_timeout", "push_timeout", "resync", "restarts", "batches", "watches", "discovers", "providers")
    FENCING_FIELD_NUMBER: _ClassVar[int]
    GOALS_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    PUSHES_FIELD_NUMBER: _ClassVar[int]
    DIFF_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    PUSH_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    WATCHES_FIELD_NUMBER: _ClassVar[int]
    DISCOVERS_FIELD_NUMBER: _ClassVar[int]
    PROVIDERS_FIELD_NUMBER: _ClassVar[int]
    fencing: Fencing
    goals: _containers.RepeatedScalarFieldContainer[Goal]
    turns: int
    pushes: int
    diff_timeout: float
    push_timeout: float
    resync: float
    restarts: bool
    batches: bool
    watches: bool
    discovers: bool
    providers: bool
    def __init__(self, fencing: _Optional[_Union[Fencing, str]] = ..., goals: _Optional[_Iterable[_Union[Goal, str]]] = ..., turns: _Optional[int] = ..., pushes: _Optional[int] = ..., diff_timeout: _Optional[float] = ..., push_timeout: _Optional[float] = ..., resync: _Optional[float] = ..., restarts: _Optional[bool] = ..., batches: _Optional[bool] = ..., watches: _Optional[bool] = ..., discovers: _Optional[bool] = ..., providers: _Optional[bool] = ...) -> None: ...

class Target(_message.Message):
    __slots__ = ("partition", "id", "type", "incarnation", "goal", "handle", "lost", "restart")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    partition: str
    id: str
    type: str
    incarnation: int
    goal: Goal
    handle: str
    lost: str
    restart: str
    def __init__(self, partition: _Optional[str] = ..., id: _Optional[str] = ..., type: _Optional[str] = ..., incarnation: _Optional[int] = ..., goal: _Optional[_Union[Goal, str]] = ..., handle: _Optional[str] = ..., lost: _Optional[str] = ..., restart: _Optional[str] = ...) -> None: ...

class Intent(_message.Message):
    __slots__ = ("assets", "outputs", "secrets", "provider")
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    assets: _containers.RepeatedCompositeFieldContainer[Asset]
    outputs: _containers.RepeatedCompositeFieldContainer[Output]
    secrets: _containers.RepeatedCompositeFieldContainer[SecretValue]
    provider: str
    def __init__(self, assets: _Optional[_Iterable[_Union[Asset, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[Output, _Mapping]]] = ..., secrets: _Optional[_Iterable[_Union[SecretValue, _Mapping]]] = ..., provider: _Optional[str] = ...) -> None: ...

class Asset(_message.Message):
    __slots__ = ("id", "exists", "type", "version", "payload", "addons", "addon_versions")
    class AddonsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    class AddonVersionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    EXISTS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    ADDONS_FIELD_NUMBER: _ClassVar[int]
    ADDON_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    id: str
    exists: bool
    type: str
    version: int
    payload: bytes
    addons: _containers.ScalarMap[str, bytes]
    addon_versions: _containers.ScalarMap[str, int]
    def __init__(self, id: _Optional[str] = ..., exists: _Optional[bool] = ..., type: _Optional[str] = ..., version: _Optional[int] = ..., payload: _Optional[bytes] = ..., addons: _Optional[_Mapping[str, bytes]] = ..., addon_versions: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("id", "path", "value")
    ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    id: str
    path: str
    value: bytes
    def __init__(self, id: _Optional[str] = ..., path: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class SecretValue(_message.Message):
    __slots__ = ("reference", "value")
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    reference: str
    value: bytes
    def __init__(self, reference: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class Need(_message.Message):
    __slots__ = ("assets", "outputs", "secrets")
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    assets: _containers.RepeatedScalarFieldContainer[str]
    outputs: _containers.RepeatedCompositeFieldContainer[OutputKey]
    secrets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, assets: _Optional[_Iterable[str]] = ..., outputs: _Optional[_Iterable[_Union[OutputKey, _Mapping]]] = ..., secrets: _Optional[_Iterable[str]] = ...) -> None: ...

class OutputKey(_message.Message):
    __slots__ = ("id", "path")
    ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    id: str
    path: str
    def __init__(self, id: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class Trouble(_message.Message):
    __slots__ = ("kind", "what", "why", "fix", "until", "code")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Trouble.Kind]
        KIND_TRANSIENT: _ClassVar[Trouble.Kind]
        KIND_STALLED: _ClassVar[Trouble.Kind]
        KIND_WAITING: _ClassVar[Trouble.Kind]
        KIND_FENCED: _ClassVar[Trouble.Kind]
    KIND_UNSPECIFIED: Trouble.Kind
    KIND_TRANSIENT: Trouble.Kind
    KIND_STALLED: Trouble.Kind
    KIND_WAITING: Trouble.Kind
    KIND_FENCED: Trouble.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    kind: Trouble.Kind
    what: str
    why: str
    fix: str
    until: float
    code: str
    def __init__(self, kind: _Optional[_Union[Trouble.Kind, str]] = ..., what: _Optional[str] = ..., why: _Optional[str] = ..., fix: _Optional[str] = ..., until: _Optional[float] = ..., code: _Optional[str] = ...) -> None: ...

class DiffRequest(_message.Message):
    __slots__ = ("target", "intent", "mark")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    target: Target
    intent: Intent
    mark: bytes
    def __init__(self, target: _Optional[_Union[Target, _Mapping]] = ..., intent: _Optional[_Union[Intent, _Mapping]] = ..., mark: _Optional[bytes] = ...) -> None: ...

class DiffResponse(_message.Message):
    __slots__ = ("mark", "difference", "need", "trouble")
    MARK_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    mark: bytes
    difference: Difference
    need: Need
    trouble: Trouble
    def __init__(self, mark: _Optional[bytes] = ..., difference: _Optional[_Union[Difference, _Mapping]] = ..., need: _Optional[_Union[Need, _Mapping]] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ...) -> None: ...

class DiffManyRequest(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[DiffRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[DiffRequest, _Mapping]]] = ...) -> None: ...

class DiffManyResponse(_message.Message):
    __slots__ = ("index", "response")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    index: int
    response: DiffResponse
    def __init__(self, index: _Optional[int] = ..., response: _Optional[_Union[DiffResponse, _Mapping]] = ...) -> None: ...

class Difference(_message.Message):
    __slots__ = ("changes", "effects", "look_again", "notes", "handle", "outputs")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    EFFECTS_FIELD_NUMBER: _ClassVar[int]
    LOOK_AGAIN_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    effects: Effects
    look_again: float
    notes: _containers.RepeatedScalarFieldContainer[str]
    handle: str
    outputs: Outputs
    def __init__(self, changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ..., effects: _Optional[_Union[Effects, _Mapping]] = ..., look_again: _Optional[float] = ..., notes: _Optional[_Iterable[str]] = ..., handle: _Optional[str] = ..., outputs: _Optional[_Union[Outputs, _Mapping]] = ...) -> None: ...

class Outputs(_message.Message):
    __slots__ = ("values",)
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.ScalarMap[str, bytes]
    def __init__(self, values: _Optional[_Mapping[str, bytes]] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("path", "intended", "observed")
    PATH_FIELD_NUMBER: _ClassVar[int]
    INTENDED_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    path: str
    intended: bytes
    observed: bytes
    def __init__(self, path: _Optional[str] = ..., intended: _Optional[bytes] = ..., observed: _Optional[bytes] = ...) -> None: ...

class Effects(_message.Message):
    __slots__ = ("capacity", "capacity_unknown", "version_from", "version_to", "destructive", "disruptive")
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FROM_FIELD_NUMBER: _ClassVar[int]
    VERSION_TO_FIELD_NUMBER: _ClassVar[int]
    DESTRUCTIVE_FIELD_NUMBER: _ClassVar[int]
    DISRUPTIVE_FIELD_NUMBER: _ClassVar[int]
    capacity: int
    capacity_unknown: bool
    version_from: str
    version_to: str
    destructive: bool
    disruptive: bool
    def __init__(self, capacity: _Optional[int] = ..., capacity_unknown: _Optional[bool] = ..., version_from: _Optional[str] = ..., version_to: _Optional[str] = ..., destructive: _Optional[bool] = ..., disruptive: _Optional[bool] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("id", "epoch", "content_digest", "diff_digest", "purpose", "partition", "asset", "type", "goal", "record")
    ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    DIFF_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ASSET_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    id: str
    epoch: int
    content_digest: bytes
    diff_digest: bytes
    purpose: str
    partition: str
    asset: str
    type: str
    goal: Goal
    record: bytes
    def __init__(self, id: _Optional[str] = ..., epoch: _Optional[int] = ..., content_digest: _Optional[bytes] = ..., diff_digest: _Optional[bytes] = ..., purpose: _Optional[str] = ..., partition: _Optional[str] = ..., asset: _Optional[str] = ..., type: _Optional[str] = ..., goal: _Optional[_Union[Goal, str]] = ..., record: _Optional[bytes] = ...) -> None: ...

class PushRequest(_message.Message):
    __slots__ = ("target", "intent", "operation")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    target: Target
    intent: Intent
    operation: Operation
    def __init__(self, target: _Optional[_Union[Target, _Mapping]] = ..., intent: _Optional[_Union[Intent, _Mapping]] = ..., operation: _Optional[_Union[Operation, _Mapping]] = ...) -> None: ...

class PushResponse(_message.Message):
    __slots__ = ("progress", "outcome", "trouble", "need")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    progress: Progress
    outcome: Outcome
    trouble: Trouble
    need: Need
    def __init__(self, progress: _Optional[_Union[Progress, _Mapping]] = ..., outcome: _Optional[_Union[Outcome, _Mapping]] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ..., need: _Optional[_Union[Need, _Mapping]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("result", "message", "retry_at", "handle")
    class Result(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        RESULT_UNSPECIFIED: _ClassVar[Outcome.Result]
        RESULT_DONE: _ClassVar[Outcome.Result]
        RESULT_FAILED: _ClassVar[Outcome.Result]
        RESULT_STALLED: _ClassVar[Outcome.Result]
        RESULT_UNKNOWN: _ClassVar[Outcome.Result]
    RESULT_UNSPECIFIED: Outcome.Result
    RESULT_DONE: Outcome.Result
    RESULT_FAILED: Outcome.Result
    RESULT_STALLED: Outcome.Result
    RESULT_UNKNOWN: Outcome.Result
    RESULT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    result: Outcome.Result
    message: str
    retry_at: float
    handle: str
    def __init__(self, result: _Optional[_Union[Outcome.Result, str]] = ..., message: _Optional[str] = ..., retry_at: _Optional[float] = ..., handle: _Optional[str] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("operation", "reason")
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        REASON_UNSPECIFIED: _ClassVar[CancelRequest.Reason]
        REASON_SUPERSEDED: _ClassVar[CancelRequest.Reason]
        REASON_TIMEOUT: _ClassVar[CancelRequest.Reason]
        REASON_SHUTDOWN: _ClassVar[CancelRequest.Reason]
    REASON_UNSPECIFIED: CancelRequest.Reason
    REASON_SUPERSEDED: CancelRequest.Reason
    REASON_TIMEOUT: CancelRequest.Reason
    REASON_SHUTDOWN: CancelRequest.Reason
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    operation: Operation
    reason: CancelRequest.Reason
    def __init__(self, operation: _Optional[_Union[Operation, _Mapping]] = ..., reason: _Optional[_Union[CancelRequest.Reason, str]] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: Operation
    def __init__(self, operation: _Optional[_Union[Operation, _Mapping]] = ...) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("state",)
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[StatusResponse.State]
        STATE_RUNNING: _ClassVar[StatusResponse.State]
        STATE_ENDED: _ClassVar[StatusResponse.State]
    STATE_UNSPECIFIED: StatusResponse.State
    STATE_RUNNING: StatusResponse.State
    STATE_ENDED: StatusResponse.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: StatusResponse.State
    def __init__(self, state: _Optional[_Union[StatusResponse.State, str]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("changed", "look_at_all", "alive")
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    LOOK_AT_ALL_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    changed: AssetKey
    look_at_all: LookAtAll
    alive: Alive
    def __init__(self, changed: _Optional[_Union[AssetKey, _Mapping]] = ..., look_at_all: _Optional[_Union[LookAtAll, _Mapping]] = ..., alive: _Optional[_Union[Alive, _Mapping]] = ...) -> None: ...

class AssetKey(_message.Message):
    __slots__ = ("partition", "id")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    partition: str
    id: str
    def __init__(self, partition: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class LookAtAll(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Alive(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DiscoverRequest(_message.Message):
    __slots__ = ("query", "partition", "intent")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    query: _containers.RepeatedScalarFieldContainer[str]
    partition: str
    intent: Intent
    def __init__(self, query: _Optional[_Iterable[str]] = ..., partition: _Optional[str] = ..., intent: _Optional[_Union[Intent, _Mapping]] = ...) -> None: ...

class DiscoverResponse(_message.Message):
    __slots__ = ("found", "trouble", "need")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    found: Found
    trouble: Trouble
    need: Need
    def __init__(self, found: _Optional[_Union[Found, _Mapping]] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ..., need: _Optional[_Union[Need, _Mapping]] = ...) -> None: ...

class Found(_message.Message):
    __slots__ = ("id", "type", "payload", "notes", "obstacle")
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    OBSTACLE_FIELD_NUMBER: _ClassVar[int]
    id: str
    type: str
    payload: bytes
    notes: _containers.RepeatedScalarFieldContainer[str]
    obstacle: str
    def __init__(self, id: _Optional[str] = ..., type: _Optional[str] = ..., payload: _Optional[bytes] = ..., notes: _Optional[_Iterable[str]] = ..., obstacle: _Optional[str] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("check", "mark", "target", "asset", "newest", "difference", "governing", "now", "purpose", "facts")
    CHECK_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ASSET_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    GOVERNING_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    check: str
    mark: bytes
    target: Target
    asset: Asset
    newest: Asset
    difference: Difference
    governing: int
    now: float
    purpose: str
    facts: _containers.RepeatedCompositeFieldContainer[CheckFact]
    def __init__(self, check: _Optional[str] = ..., mark: _Optional[bytes] = ..., target: _Optional[_Union[Target, _Mapping]] = ..., asset: _Optional[_Union[Asset, _Mapping]] = ..., newest: _Optional[_Union[Asset, _Mapping]] = ..., difference: _Optional[_Union[Difference, _Mapping]] = ..., governing: _Optional[int] = ..., now: _Optional[float] = ..., purpose: _Optional[str] = ..., facts: _Optional[_Iterable[_Union[CheckFact, _Mapping]]] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ("mark", "verdicts", "need", "trouble")
    MARK_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    mark: bytes
    verdicts: Verdicts
    need: CheckQuestions
    trouble: Trouble
    def __init__(self, mark: _Optional[bytes] = ..., verdicts: _Optional[_Union[Verdicts, _Mapping]] = ..., need: _Optional[_Union[CheckQuestions, _Mapping]] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ...) -> None: ...

class Verdicts(_message.Message):
    __slots__ = ("verdicts",)
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    verdicts: _containers.RepeatedCompositeFieldContainer[Verdict]
    def __init__(self, verdicts: _Optional[_Iterable[_Union[Verdict, _Mapping]]] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("check", "decision", "reason", "message", "unblock", "until", "wait_for", "reservations", "overridden", "readings")
    class Decision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DECISION_UNSPECIFIED: _ClassVar[Verdict.Decision]
        DECISION_ALLOW: _ClassVar[Verdict.Decision]
        DECISION_WAIT: _ClassVar[Verdict.Decision]
    DECISION_UNSPECIFIED: Verdict.Decision
    DECISION_ALLOW: Verdict.Decision
    DECISION_WAIT: Verdict.Decision
    CHECK_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    UNBLOCK_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    WAIT_FOR_FIELD_NUMBER: _ClassVar[int]
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    OVERRIDDEN_FIELD_NUMBER: _ClassVar[int]
    READINGS_FIELD_NUMBER: _ClassVar[int]
    check: str
    decision: Verdict.Decision
    reason: str
    message: str
    unblock: str
    until: float
    wait_for: _containers.RepeatedScalarFieldContainer[str]
    reservations: _containers.RepeatedCompositeFieldContainer[Reservation]
    overridden: str
    readings: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, check: _Optional[str] = ..., decision: _Optional[_Union[Verdict.Decision, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., unblock: _Optional[str] = ..., until: _Optional[float] = ..., wait_for: _Optional[_Iterable[str]] = ..., reservations: _Optional[_Iterable[_Union[Reservation, _Mapping]]] = ..., overridden: _Optional[str] = ..., readings: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Reservation(_message.Message):
    __slots__ = ("key", "limit", "window", "once")
    KEY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    ONCE_FIELD_NUMBER: _ClassVar[int]
    key: str
    limit: int
    window: float
    once: bool
    def __init__(self, key: _Optional[str] = ..., limit: _Optional[int] = ..., window: _Optional[float] = ..., once: _Optional[bool] = ...) -> None: ...

class CheckQuestions(_message.Message):
    __slots__ = ("questions",)
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    questions: _containers.RepeatedCompositeFieldContainer[CheckQuestion]
    def __init__(self, questions: _Optional[_Iterable[_Union[CheckQuestion, _Mapping]]] = ...) -> None: ...

class CheckQuestion(_message.Message):
    __slots__ = ("governing", "controls", "usage", "asset", "difference", "referrers", "dependencies", "metric_history")
    GOVERNING_FIELD_NUMBER: _ClassVar[int]
    CONTROLS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    ASSET_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    REFERRERS_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    METRIC_HISTORY_FIELD_NUMBER: _ClassVar[int]
    governing: str
    controls: bool
    usage: Reservation
    asset: str
    difference: DiffQuestion
    referrers: bool
    dependencies: str
    metric_history: bytes
    def __init__(self, governing: _Optional[str] = ..., controls: _Optional[bool] = ..., usage: _Optional[_Union[Reservation, _Mapping]] = ..., asset: _Optional[str] = ..., difference: _Optional[_Union[DiffQuestion, _Mapping]] = ..., referrers: _Optional[bool] = ..., dependencies: _Optional[str] = ..., metric_history: _Optional[bytes] = ...) -> None: ...

class DiffQuestion(_message.Message):
    __slots__ = ("id", "own", "settled")
    ID_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    id: str
    own: bool
    settled: bool
    def __init__(self, id: _Optional[str] = ..., own: _Optional[bool] = ..., settled: _Optional[bool] = ...) -> None: ...

class CheckFact(_message.Message):
    __slots__ = ("question", "assets", "controls", "usage", "difference", "referrers", "dependencies", "metric_history", "trouble")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    CONTROLS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    REFERRERS_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    METRIC_HISTORY_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    question: CheckQuestion
    assets: _containers.RepeatedCompositeFieldContainer[Asset]
    controls: _containers.RepeatedCompositeFieldContainer[Control]
    usage: Usage
    difference: Difference
    referrers: _containers.RepeatedCompositeFieldContainer[Referrer]
    dependencies: _containers.RepeatedScalarFieldContainer[str]
    metric_history: bytes
    trouble: Trouble
    def __init__(self, question: _Optional[_Union[CheckQuestion, _Mapping]] = ..., assets: _Optional[_Iterable[_Union[Asset, _Mapping]]] = ..., controls: _Optional[_Iterable[_Union[Control, _Mapping]]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., difference: _Optional[_Union[Difference, _Mapping]] = ..., referrers: _Optional[_Iterable[_Union[Referrer, _Mapping]]] = ..., dependencies: _Optional[_Iterable[str]] = ..., metric_history: _Optional[bytes] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ...) -> None: ...

class Control(_message.Message):
    __slots__ = ("id", "kind", "selects", "reason", "actor", "check", "record")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SELECTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: str
    selects: bool
    reason: str
    actor: str
    check: str
    record: bytes
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[str] = ..., selects: _Optional[bool] = ..., reason: _Optional[str] = ..., actor: _Optional[str] = ..., check: _Optional[str] = ..., record: _Optional[bytes] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("count", "until")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    count: int
    until: float
    def __init__(self, count: _Optional[int] = ..., until: _Optional[float] = ...) -> None: ...

class Referrer(_message.Message):
    __slots__ = ("asset", "mentions")
    ASSET_FIELD_NUMBER: _ClassVar[int]
    MENTIONS_FIELD_NUMBER: _ClassVar[int]
    asset: Asset
    mentions: bytes
    def __init__(self, asset: _Optional[_Union[Asset, _Mapping]] = ..., mentions: _Optional[bytes] = ...) -> None: ...

class SelectRequest(_message.Message):
    __slots__ = ("selection", "question")
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    selection: str
    question: bytes
    def __init__(self, selection: _Optional[str] = ..., question: _Optional[bytes] = ...) -> None: ...

class SelectResponse(_message.Message):
    __slots__ = ("answer", "trouble")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    answer: bytes
    trouble: Trouble
    def __init__(self, answer: _Optional[bytes] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ...) -> None: ...

class ValidateRequest(_message.Message):
    __slots__ = ("validator", "mark", "partition", "changes", "assets", "referrers", "size_before")
    VALIDATOR_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    REFERRERS_FIELD_NUMBER: _ClassVar[int]
    SIZE_BEFORE_FIELD_NUMBER: _ClassVar[int]
    validator: str
    mark: bytes
    partition: str
    changes: _containers.RepeatedCompositeFieldContainer[AssetChange]
    assets: _containers.RepeatedCompositeFieldContainer[Asset]
    referrers: _containers.RepeatedCompositeFieldContainer[Referrers]
    size_before: int
    def __init__(self, validator: _Optional[str] = ..., mark: _Optional[bytes] = ..., partition: _Optional[str] = ..., changes: _Optional[_Iterable[_Union[AssetChange, _Mapping]]] = ..., assets: _Optional[_Iterable[_Union[Asset, _Mapping]]] = ..., referrers: _Optional[_Iterable[_Union[Referrers, _Mapping]]] = ..., size_before: _Optional[int] = ...) -> None: ...

class AssetChange(_message.Message):
    __slots__ = ("id", "before", "after")
    ID_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    id: str
    before: Asset
    after: Asset
    def __init__(self, id: _Optional[str] = ..., before: _Optional[_Union[Asset, _Mapping]] = ..., after: _Optional[_Union[Asset, _Mapping]] = ...) -> None: ...

class Referrers(_message.Message):
    __slots__ = ("id", "referrers")
    ID_FIELD_NUMBER: _ClassVar[int]
    REFERRERS_FIELD_NUMBER: _ClassVar[int]
    id: str
    referrers: _containers.RepeatedCompositeFieldContainer[Referrer]
    def __init__(self, id: _Optional[str] = ..., referrers: _Optional[_Iterable[_Union[Referrer, _Mapping]]] = ...) -> None: ...

class ValidateResponse(_message.Message):
    __slots__ = ("mark", "problems", "need", "trouble")
    MARK_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    mark: bytes
    problems: Problems
    need: ValidateNeed
    trouble: Trouble
    def __init__(self, mark: _Optional[bytes] = ..., problems: _Optional[_Union[Problems, _Mapping]] = ..., need: _Optional[_Union[ValidateNeed, _Mapping]] = ..., trouble: _Optional[_Union[Trouble, _Mapping]] = ...) -> None: ...

class ValidateNeed(_message.Message):
    __slots__ = ("assets", "referrers")
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    REFERRERS_FIELD_NUMBER: _ClassVar[int]
    assets: _containers.RepeatedScalarFieldContainer[str]
    referrers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, assets: _Optional[_Iterable[str]] = ..., referrers: _Optional[_Iterable[str]] = ...) -> None: ...

class Problems(_message.Message):
    __slots__ = ("problems",)
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    problems: _containers.RepeatedCompositeFieldContainer[Problem]
    def __init__(self, problems: _Optional[_Iterable[_Union[Problem, _Mapping]]] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("severity", "code", "asset", "pointer", "what", "why", "fix")
    class Severity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SEVERITY_UNSPECIFIED: _ClassVar[Problem.Severity]
        SEVERITY_ERROR: _ClassVar[Problem.Severity]
        SEVERITY_WARNING: _ClassVar[Problem.Severity]
    SEVERITY_UNSPECIFIED: Problem.Severity
    SEVERITY_ERROR: Problem.Severity
    SEVERITY_WARNING: Problem.Severity
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    ASSET_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    severity: Problem.Severity
    code: str
    asset: str
    pointer: str
    what: str
    why: str
    fix: str
    def __init__(self, severity: _Optional[_Union[Problem.Severity, str]] = ..., code: _Optional[str] = ..., asset: _Optional[str] = ..., pointer: _Optional[str] = ..., what: _Optional[str] = ..., why: _Optional[str] = ..., fix: _Optional[str] = ...) -> None: ...
