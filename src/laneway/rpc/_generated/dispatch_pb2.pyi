from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Answer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ANSWER_UNSPECIFIED: _ClassVar[Answer]
    ANSWER_ACCEPTED: _ClassVar[Answer]
    ANSWER_FENCED: _ClassVar[Answer]
    ANSWER_CANCEL_REQUESTED: _ClassVar[Answer]

class Isolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ISOLATION_UNSPECIFIED: _ClassVar[Isolation]
    ISOLATION_ASYNC: _ClassVar[Isolation]
    ISOLATION_THREAD: _ClassVar[Isolation]
    ISOLATION_PROCESS: _ClassVar[Isolation]

class WaitState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_STATE_UNSPECIFIED: _ClassVar[WaitState]
    WAIT_STATE_OPEN: _ClassVar[WaitState]
    WAIT_STATE_DONE: _ClassVar[WaitState]
    WAIT_STATE_TIMED_OUT: _ClassVar[WaitState]
ANSWER_UNSPECIFIED: Answer
ANSWER_ACCEPTED: Answer
ANSWER_FENCED: Answer
ANSWER_CANCEL_REQUESTED: Answer
ISOLATION_UNSPECIFIED: Isolation
ISOLATION_ASYNC: Isolation
ISOLATION_THREAD: Isolation
ISOLATION_PROCESS: Isolation
WAIT_STATE_UNSPECIFIED: WaitState
WAIT_STATE_OPEN: WaitState
WAIT_STATE_DONE: WaitState
WAIT_STATE_TIMED_OUT: WaitState

class Claim(_message.Message):
    __slots__ = ("job_id", "attempt")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    attempt: int
    def __init__(self, job_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class JobType(_message.Message):
    __slots__ = ("name", "isolation", "has_analysis", "declaration")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    HAS_ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    DECLARATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    isolation: Isolation
    has_analysis: bool
    declaration: str
    def __init__(self, name: _Optional[str] = ..., isolation: _Optional[_Union[Isolation, str]] = ..., has_analysis: bool = ..., declaration: _Optional[str] = ...) -> None: ...

class StreamJobsRequest(_message.Message):
    __slots__ = ("worker_id", "name", "job_types", "max_in_flight", "max_threads", "max_processes", "holds", "host", "pid", "code", "memory_bytes", "max_async")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    JOB_TYPES_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_THREADS_FIELD_NUMBER: _ClassVar[int]
    MAX_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_ASYNC_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    name: str
    job_types: _containers.RepeatedCompositeFieldContainer[JobType]
    max_in_flight: int
    max_threads: int
    max_processes: int
    holds: _containers.RepeatedCompositeFieldContainer[Claim]
    host: str
    pid: int
    code: str
    memory_bytes: int
    max_async: int
    def __init__(self, worker_id: _Optional[str] = ..., name: _Optional[str] = ..., job_types: _Optional[_Iterable[_Union[JobType, _Mapping]]] = ..., max_in_flight: _Optional[int] = ..., max_threads: _Optional[int] = ..., max_processes: _Optional[int] = ..., holds: _Optional[_Iterable[_Union[Claim, _Mapping]]] = ..., host: _Optional[str] = ..., pid: _Optional[int] = ..., code: _Optional[str] = ..., memory_bytes: _Optional[int] = ..., max_async: _Optional[int] = ...) -> None: ...

class StreamJobsResponse(_message.Message):
    __slots__ = ("assignments", "beat", "uncovered", "ignored", "token_expires_in_ms")
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    BEAT_FIELD_NUMBER: _ClassVar[int]
    UNCOVERED_FIELD_NUMBER: _ClassVar[int]
    IGNORED_FIELD_NUMBER: _ClassVar[int]
    TOKEN_EXPIRES_IN_MS_FIELD_NUMBER: _ClassVar[int]
    assignments: _containers.RepeatedCompositeFieldContainer[Assignment]
    beat: bool
    uncovered: _containers.RepeatedScalarFieldContainer[str]
    ignored: _containers.RepeatedCompositeFieldContainer[Ignored]
    token_expires_in_ms: int
    def __init__(self, assignments: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., beat: bool = ..., uncovered: _Optional[_Iterable[str]] = ..., ignored: _Optional[_Iterable[_Union[Ignored, _Mapping]]] = ..., token_expires_in_ms: _Optional[int] = ...) -> None: ...

class Ignored(_message.Message):
    __slots__ = ("job_type", "fields", "arguments_refused")
    JOB_TYPE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_REFUSED_FIELD_NUMBER: _ClassVar[int]
    job_type: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    arguments_refused: str
    def __init__(self, job_type: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ..., arguments_refused: _Optional[str] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("job_id", "attempt", "job_type", "payload", "checkpoint", "steps", "lease_ms", "lease_left_ms", "timeout_ms", "traceparent", "lane", "retries", "is_analysis", "max_retries", "tags", "created_by", "can_wait", "is_ahead")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    JOB_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    RETRIES_FIELD_NUMBER: _ClassVar[int]
    IS_ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    MAX_RETRIES_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    CAN_WAIT_FIELD_NUMBER: _ClassVar[int]
    IS_AHEAD_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    attempt: int
    job_type: str
    payload: str
    checkpoint: str
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    lease_ms: int
    lease_left_ms: int
    timeout_ms: int
    traceparent: str
    lane: str
    retries: int
    is_analysis: bool
    max_retries: int
    tags: _containers.RepeatedScalarFieldContainer[str]
    created_by: str
    can_wait: bool
    is_ahead: bool
    def __init__(self, job_id: _Optional[str] = ..., attempt: _Optional[int] = ..., job_type: _Optional[str] = ..., payload: _Optional[str] = ..., checkpoint: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., lease_ms: _Optional[int] = ..., lease_left_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., traceparent: _Optional[str] = ..., lane: _Optional[str] = ..., retries: _Optional[int] = ..., is_analysis: bool = ..., max_retries: _Optional[int] = ..., tags: _Optional[_Iterable[str]] = ..., created_by: _Optional[str] = ..., can_wait: bool = ..., is_ahead: bool = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("name", "result", "took_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    result: str
    took_ms: int
    def __init__(self, name: _Optional[str] = ..., result: _Optional[str] = ..., took_ms: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("worker_id", "claims", "memory_bytes")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    claims: _containers.RepeatedCompositeFieldContainer[Claim]
    memory_bytes: int
    def __init__(self, worker_id: _Optional[str] = ..., claims: _Optional[_Iterable[_Union[Claim, _Mapping]]] = ..., memory_bytes: _Optional[int] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedScalarFieldContainer[Answer]
    def __init__(self, answers: _Optional[_Iterable[_Union[Answer, str]]] = ...) -> None: ...

class Update(_message.Message):
    __slots__ = ("claim", "stage", "done", "total", "message", "checkpoint", "steps", "lines")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    stage: str
    done: float
    total: float
    message: str
    checkpoint: str
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    lines: _containers.RepeatedCompositeFieldContainer[LogLine]
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., stage: _Optional[str] = ..., done: _Optional[float] = ..., total: _Optional[float] = ..., message: _Optional[str] = ..., checkpoint: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., lines: _Optional[_Iterable[_Union[LogLine, _Mapping]]] = ...) -> None: ...

class LogLine(_message.Message):
    __slots__ = ("number", "level", "message", "age_ms")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    number: int
    level: str
    message: str
    age_ms: int
    def __init__(self, number: _Optional[int] = ..., level: _Optional[str] = ..., message: _Optional[str] = ..., age_ms: _Optional[int] = ...) -> None: ...

class ReportProgressRequest(_message.Message):
    __slots__ = ("worker_id", "updates")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    updates: _containers.RepeatedCompositeFieldContainer[Update]
    def __init__(self, worker_id: _Optional[str] = ..., updates: _Optional[_Iterable[_Union[Update, _Mapping]]] = ...) -> None: ...

class ReportProgressResponse(_message.Message):
    __slots__ = ("progressed",)
    PROGRESSED_FIELD_NUMBER: _ClassVar[int]
    progressed: _containers.RepeatedCompositeFieldContainer[Progressed]
    def __init__(self, progressed: _Optional[_Iterable[_Union[Progressed, _Mapping]]] = ...) -> None: ...

class Progressed(_message.Message):
    __slots__ = ("answer", "steps")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    answer: Answer
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    def __init__(self, answer: _Optional[_Union[Answer, str]] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("claim", "ran_ms", "finish", "fail", "snooze", "cancel", "release", "wait")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    RAN_MS_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    FAIL_FIELD_NUMBER: _ClassVar[int]
    SNOOZE_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    ran_ms: int
    finish: Finish
    fail: Fail
    snooze: Snooze
    cancel: Cancel
    release: Release
    wait: Wait
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., ran_ms: _Optional[int] = ..., finish: _Optional[_Union[Finish, _Mapping]] = ..., fail: _Optional[_Union[Fail, _Mapping]] = ..., snooze: _Optional[_Union[Snooze, _Mapping]] = ..., cancel: _Optional[_Union[Cancel, _Mapping]] = ..., release: _Optional[_Union[Release, _Mapping]] = ..., wait: _Optional[_Union[Wait, _Mapping]] = ...) -> None: ...

class Finish(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: str
    def __init__(self, result: _Optional[str] = ...) -> None: ...

class Fail(_message.Message):
    __slots__ = ("error", "retry_after_ms", "is_final")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    IS_FINAL_FIELD_NUMBER: _ClassVar[int]
    error: Error
    retry_after_ms: int
    is_final: bool
    def __init__(self, error: _Optional[_Union[Error, _Mapping]] = ..., retry_after_ms: _Optional[int] = ..., is_final: bool = ...) -> None: ...

class Snooze(_message.Message):
    __slots__ = ("delay_ms",)
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    delay_ms: int
    def __init__(self, delay_ms: _Optional[int] = ...) -> None: ...

class Cancel(_message.Message):
    __slots__ = ("reason", "result")
    REASON_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    reason: str
    result: str
    def __init__(self, reason: _Optional[str] = ..., result: _Optional[str] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Wait(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("type", "message", "traceback", "is_public")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    IS_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    type: str
    message: str
    traceback: str
    is_public: bool
    def __init__(self, type: _Optional[str] = ..., message: _Optional[str] = ..., traceback: _Optional[str] = ..., is_public: bool = ...) -> None: ...

class ReportResultRequest(_message.Message):
    __slots__ = ("worker_id", "results", "ahead")
    class AheadEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    results: _containers.RepeatedCompositeFieldContainer[Result]
    ahead: _containers.ScalarMap[str, int]
    def __init__(self, worker_id: _Optional[str] = ..., results: _Optional[_Iterable[_Union[Result, _Mapping]]] = ..., ahead: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ReportResultResponse(_message.Message):
    __slots__ = ("answers", "statuses")
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedScalarFieldContainer[Answer]
    statuses: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, answers: _Optional[_Iterable[_Union[Answer, str]]] = ..., statuses: _Optional[_Iterable[str]] = ...) -> None: ...

class AcquireLimitsRequest(_message.Message):
    __slots__ = ("worker_id", "claim", "wants", "inside")
    class WantsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class InsideEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    WANTS_FIELD_NUMBER: _ClassVar[int]
    INSIDE_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    claim: Claim
    wants: _containers.ScalarMap[str, int]
    inside: _containers.ScalarMap[str, int]
    def __init__(self, worker_id: _Optional[str] = ..., claim: _Optional[_Union[Claim, _Mapping]] = ..., wants: _Optional[_Mapping[str, int]] = ..., inside: _Optional[_Mapping[str, int]] = ...) -> None: ...

class AcquireLimitsResponse(_message.Message):
    __slots__ = ("answer", "is_full", "wait_ms")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    IS_FULL_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    answer: Answer
    is_full: bool
    wait_ms: int
    def __init__(self, answer: _Optional[_Union[Answer, str]] = ..., is_full: bool = ..., wait_ms: _Optional[int] = ...) -> None: ...

class ReleaseLimitsRequest(_message.Message):
    __slots__ = ("worker_id", "claim", "keeps")
    class KeepsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    KEEPS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    claim: Claim
    keeps: _containers.ScalarMap[str, int]
    def __init__(self, worker_id: _Optional[str] = ..., claim: _Optional[_Union[Claim, _Mapping]] = ..., keeps: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ReleaseLimitsResponse(_message.Message):
    __slots__ = ("answer",)
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    answer: Answer
    def __init__(self, answer: _Optional[_Union[Answer, str]] = ...) -> None: ...

class ReadWaitsRequest(_message.Message):
    __slots__ = ("worker_id", "claim")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    claim: Claim
    def __init__(self, worker_id: _Optional[str] = ..., claim: _Optional[_Union[Claim, _Mapping]] = ...) -> None: ...

class ReadWaitsResponse(_message.Message):
    __slots__ = ("answer", "waits")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    answer: Answer
    waits: _containers.RepeatedCompositeFieldContainer[StoredWait]
    def __init__(self, answer: _Optional[_Union[Answer, str]] = ..., waits: _Optional[_Iterable[_Union[StoredWait, _Mapping]]] = ...) -> None: ...

class StoredWait(_message.Message):
    __slots__ = ("name", "kind", "event", "key", "total", "stored")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    event: str
    key: str
    total: int
    stored: int
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., event: _Optional[str] = ..., key: _Optional[str] = ..., total: _Optional[int] = ..., stored: _Optional[int] = ...) -> None: ...

class BeginWaitRequest(_message.Message):
    __slots__ = ("worker_id", "claim", "name", "kind", "duration_ms", "event", "key")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    claim: Claim
    name: str
    kind: str
    duration_ms: int
    event: str
    key: str
    def __init__(self, worker_id: _Optional[str] = ..., claim: _Optional[_Union[Claim, _Mapping]] = ..., name: _Optional[str] = ..., kind: _Optional[str] = ..., duration_ms: _Optional[int] = ..., event: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class BeginWaitResponse(_message.Message):
    __slots__ = ("answer", "state", "result")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    answer: Answer
    state: WaitState
    result: str
    def __init__(self, answer: _Optional[_Union[Answer, str]] = ..., state: _Optional[_Union[WaitState, str]] = ..., result: _Optional[str] = ...) -> None: ...

class SubmitSubJobsRequest(_message.Message):
    __slots__ = ("worker_id", "claim", "name", "total", "offset", "jobs")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    claim: Claim
    name: str
    total: int
    offset: int
    jobs: _containers.RepeatedCompositeFieldContainer[SubJob]
    def __init__(self, worker_id: _Optional[str] = ..., claim: _Optional[_Union[Claim, _Mapping]] = ..., name: _Optional[str] = ..., total: _Optional[int] = ..., offset: _Optional[int] = ..., jobs: _Optional[_Iterable[_Union[SubJob, _Mapping]]] = ...) -> None: ...

class SubJob(_message.Message):
    __slots__ = ("job_type", "payload", "options")
    JOB_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    job_type: str
    payload: str
    options: str
    def __init__(self, job_type: _Optional[str] = ..., payload: _Optional[str] = ..., options: _Optional[str] = ...) -> None: ...

class SubmitSubJobsResponse(_message.Message):
    __slots__ = ("answer", "stored")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    answer: Answer
    stored: int
    def __init__(self, answer: _Optional[_Union[Answer, str]] = ..., stored: _Optional[int] = ...) -> None: ...

class ReadResultsRequest(_message.Message):
    __slots__ = ("worker_id", "claim", "wait", "after")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    claim: Claim
    wait: str
    after: int
    def __init__(self, worker_id: _Optional[str] = ..., claim: _Optional[_Union[Claim, _Mapping]] = ..., wait: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class ReadResultsResponse(_message.Message):
    __slots__ = ("answer", "results")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    answer: Answer
    results: _containers.RepeatedCompositeFieldContainer[JobResult]
    def __init__(self, answer: _Optional[_Union[Answer, str]] = ..., results: _Optional[_Iterable[_Union[JobResult, _Mapping]]] = ...) -> None: ...

class JobResult(_message.Message):
    __slots__ = ("job_id", "job_type", "name", "status", "result")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    job_type: str
    name: str
    status: str
    result: str
    def __init__(self, job_id: _Optional[str] = ..., job_type: _Optional[str] = ..., name: _Optional[str] = ..., status: _Optional[str] = ..., result: _Optional[str] = ...) -> None: ...
