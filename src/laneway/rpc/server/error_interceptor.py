"""Ends every call with a status that says what to do, without a traceback or unknown error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError

from laneway.domain.text import visible
from laneway.errors import InvalidInput, LanewayError
from laneway.observability.counters import PROCESS
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway.rpc")

# The status by the code of the error; other errors are bugs in the server.
STATUS: Final[dict[str, grpc.StatusCode]] = {
    "invalid_input": grpc.StatusCode.INVALID_ARGUMENT,
    "not_found": grpc.StatusCode.NOT_FOUND,
    "refused": grpc.StatusCode.FAILED_PRECONDITION,
    "stale_attempt": grpc.StatusCode.FAILED_PRECONDITION,
    "unauthenticated": grpc.StatusCode.UNAUTHENTICATED,
    "forbidden": grpc.StatusCode.PERMISSION_DENIED,
    "rate_limited": grpc.StatusCode.RESOURCE_EXHAUSTED,
    # Workers repeat a call that ends with RESOURCE_EXHAUSTED, and would hold a slot until there is
    # room: with this status the attempt fails, and its retry looks again.
    "quota_exceeded": grpc.StatusCode.FAILED_PRECONDITION,
    "database_unavailable": grpc.StatusCode.UNAVAILABLE,
    "schema_mismatch": grpc.StatusCode.UNAVAILABLE,
    "unsuitable_database": grpc.StatusCode.UNAVAILABLE,
}
_UNAVAILABLE: Final = "the database cannot be reached, or has another schema than this server needs"
_LATE: Final = "not done in time: send the same call again"
_LONGEST: Final = 1000
# The largest request without a token: the health checks of load balancers.
ANONYMOUS_BYTES: Final = 1024
# The forms of calls, and whether their responses are streams.
_FORMS: Final = {
    "unary_unary": False,
    "unary_stream": True,
    "stream_unary": False,
    "stream_stream": True,
}
# A context returns its code as a number, unlike documented.
_NAMES: Final = {key: code.name for code in grpc.StatusCode for key in (code, code.value[0])}

_warnings: Final = LogThrottle()

Handler = Callable[[Any, Any], Any]
Q = TypeVar("Q")
A = TypeVar("A")


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Reads requests, turns every error of a call into a status, and counts calls by status.

    Streams are coroutines that write through their context, not generators.
    """

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Q, A] | None]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Q, A] | None:
        method = await continuation(handler_call_details)
        # gRPC does not type the four forms of a method handler.
        found: Any = method
        name = handler_call_details.method.rpartition("/")[2]
        if found is None:
            return None
        for form, is_stream in _FORMS.items():
            work = getattr(found, form)
            if work is not None:
                call = _guarded(name, work, found.request_deserializer)
                make: Any = getattr(grpc, f"{form}_rpc_method_handler")
                intercepted: grpc.RpcMethodHandler[Q, A] = make(
                    _counted(name, call, is_stream=is_stream),
                    response_serializer=found.response_serializer,
                )
                return intercepted
        return method


def _guarded(name: str, work: Handler, read: Callable[[bytes], Any] | None) -> Handler:
    async def call(data: Any, context: Any) -> Any:
        try:
            if read is None:
                return await work(data, context)
            if len(data) > ANONYMOUS_BYTES:
                raise InvalidInput("request", f"takes more than {ANONYMOUS_BYTES} bytes")
            return await work(read(data), context)
        except grpc.aio.AbortError:
            raise
        except grpc.aio.BaseError:
            raise _caller_gone() from None
        except Exception as error:
            await refuse(context, name, error)

    return call


def _counted(name: str, work: Handler, *, is_stream: bool) -> Handler:
    async def call(data: Any, context: Any) -> Any:
        begun = time.monotonic()
        # Without another status the caller has left, or the server stops.
        status = grpc.StatusCode.CANCELLED.name
        if is_stream:
            PROCESS.call_streams[name] += 1
        try:
            answer = await work(data, context)
            status = grpc.StatusCode.OK.name
            return answer
        except grpc.aio.AbortError:
            status = _NAMES.get(context.code(), grpc.StatusCode.UNKNOWN.name)
            raise
        finally:
            if is_stream:
                PROCESS.call_streams[name] -= 1
            PROCESS.called(name, status, None if is_stream else time.monotonic() - begun)

    return call


async def refuse(context: Any, name: str, error: Exception) -> NoReturn:
    """Ends a call with the status of its error."""
    status, details = _status_of(name, error)
    try:
        await context.abort(status, visible(details)[:_LONGEST])
    except grpc.aio.AbortError:
        raise
    except grpc.aio.BaseError:
        pass
    raise _caller_gone()


def _caller_gone() -> asyncio.CancelledError:
    """The error with which gRPC ends a call whose caller has left."""
    return asyncio.CancelledError("the caller has left")


def _status_of(name: str, error: Exception) -> tuple[grpc.StatusCode, str]:
    if isinstance(error, DecodeError):
        return grpc.StatusCode.INVALID_ARGUMENT, f"request: cannot be read as a request of {name}"
    if isinstance(error, TimeoutError):
        return grpc.StatusCode.UNAVAILABLE, _LATE
    status = STATUS.get(error.code) if isinstance(error, LanewayError) else None
    if status is None:
        log.error("%s failed", name, exc_info=error)
        return grpc.StatusCode.INTERNAL, "an internal error occurred: see the server's log"
    if status is grpc.StatusCode.UNAVAILABLE:
        # The error names hosts and accounts, and many workers repeat their calls.
        _warnings.warn(name, error)
        return status, _UNAVAILABLE
    return status, str(error)
