"""Writes assignments as the bytes of a message, without an object for each job.

The jobs of one message differ in little more than their ids and payloads. So the fields that they
share are serialized once, and put between those of each job: a message has no order of fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.server.assignment_queue import OutAssignment


def _tag(kind: str, field: str) -> bytes:
    """The bytes before a length: the number of the field, and that a length follows."""
    return bytes([pb.DESCRIPTOR.message_types_by_name[kind].fields_by_name[field].number << 3 | 2])


_ASSIGNMENT: Final = _tag("StreamJobsResponse", "assignments")
_JOB_ID: Final = _tag("Assignment", "job_id")
_PAYLOAD: Final = _tag("Assignment", "payload")


def write_assignments(batch: Iterable[OutAssignment]) -> bytes:
    """The bytes of a StreamJobsResponse with these assignments."""
    shared: dict[tuple[object, ...], bytes] = {}
    parts: list[bytes] = []
    for one in batch:
        # All fields after the payload, the attempt and the type.
        key = one[5:], one.checkpoint, one.job_type, one.claim.attempt
        rest = shared.get(key)
        if rest is None:
            rest = shared[key] = _shared_fields(one).SerializeToString()
        job_id, payload = one.id.encode(), one.payload.encode()
        id_size, payload_size = varint(len(job_id)), varint(len(payload))
        size = len(rest) + 2 + len(id_size) + len(job_id) + len(payload_size) + len(payload)
        parts += (
            *(_ASSIGNMENT, varint(size), rest, _JOB_ID, id_size, job_id),
            *(_PAYLOAD, payload_size, payload),
        )
    return b"".join(parts)


def _shared_fields(one: OutAssignment) -> pb.Assignment:
    """An assignment without the fields in which jobs usually differ."""
    return pb.Assignment(
        attempt=one.claim.attempt,
        job_type=one.job_type,
        checkpoint=one.checkpoint,
        steps=[
            pb.Step(name=name, result=result, took_ms=int((took_s or 0.0) * 1000))
            for name, result, took_s in one.steps
        ],
        lease_ms=one.lease_ms,
        lease_left_ms=one.lease_left_ms,
        timeout_ms=one.timeout_ms,
        traceparent=one.traceparent or "",
        lane=one.lane,
        retries=one.retries,
        is_analysis=one.is_analysis,
        max_retries=one.max_retries,
        tags=one.tags,
        created_by=one.created_by or "",
        can_wait=True,
        is_ahead=one.is_ahead,
    )


def varint(number: int) -> bytes:
    """A number in as many groups of seven bits as it needs."""
    return _SMALL[number] if number < len(_SMALL) else _varint(number)


def _varint(number: int) -> bytes:
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


_SMALL: Final = tuple(_varint(number) for number in range(1024))
