"""The MCP server: its tools and resources use a client of the API."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Final

from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedToolError,
)
from mcp.server.mcpserver.tools import Tool as Registered
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, ToolAnnotations
from mcp_types import Resource as ListedResource
from mcp_types import Tool as ListedTool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from laneway import __version__
from laneway.errors import LanewayError, NotFound
from laneway.http import AsyncClient
from laneway.mcp.declared import tool_of
from laneway.mcp.tools import TOOLS, Tools, briefly, find_id

STATUS_URI: Final = "laneway://workers/status"
# Its second name. It is not a URI: clients of earlier protocols fail on a list that contains it.
STATUS_NAME: Final = "workers/status"
JOB_URI: Final = "laneway://jobs/{job_id}"
_JSON: Final = "application/json"
_INSTRUCTIONS: Final = (
    "Laneway runs background jobs. A job waits in a lane until a slot is free. explain_job says"
    f" why a job does not run; the resource {STATUS_URI} shows lanes, slots and workers."
)

# The client and the protocol version of the current message.
_client: ContextVar[AsyncClient] = ContextVar("client")
_protocol: ContextVar[str] = ContextVar("protocol")

# Returns the client for one message; its argument is the HTTP request of the message, if any.
Clients = Callable[[Any], AbstractAsyncContextManager[AsyncClient]]


def make_server(clients: Clients, *, is_writing: bool) -> McpServer:
    """The server; each message uses a client of `clients`.

    Without `is_writing` it has only tools that read.
    """

    async def with_client(
        ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        async with clients(ctx.request) as client:
            token, version = _client.set(client), _protocol.set(ctx.protocol_version)
            try:
                return await call_next(ctx)
            finally:
                _protocol.reset(version)
                _client.reset(token)

    with _logging_unchanged():
        server = McpServer(
            "laneway",
            title="Laneway",
            version=__version__,
            instructions=_INSTRUCTIONS,
            tools=[tool for name, tool in _tools().items() if is_writing or not TOOLS[name].writes],
            middleware=[with_client],
            subscriptions=False,
        )
    for uri in (STATUS_URI, STATUS_NAME):
        server.resource(
            uri,
            name="status",
            description="Lanes, slots, waiting jobs, workers and leader in one read",
            mime_type=_JSON,
        )(_read_status)
    server.resource(JOB_URI, name="job", description="One job with its attempts", mime_type=_JSON)(
        _read_job
    )
    return server


def always(client: AsyncClient) -> Clients:
    """Use one client for all messages."""

    @asynccontextmanager
    async def same(request: Any) -> AsyncIterator[AsyncClient]:
        yield client

    return same


class McpServer(MCPServer[Any]):
    """Lists the tools that the caller may use; the API refuses and audits the use of others."""

    @property
    def lowlevel(self) -> Server[Any]:
        """The protocol implementation, for Laneway's transports."""
        return self._lowlevel_server

    async def list_tools(self) -> list[ListedTool]:
        try:
            me = await _client.get().get_me()
        except LanewayError as error:
            raise MCPError(INTERNAL_ERROR, _message(error)) from None
        return [
            tool for tool in await super().list_tools() if me.allows(TOOLS[tool.name].permission)
        ]

    async def list_resources(self) -> list[ListedResource]:
        listed = await super().list_resources()
        if _protocol.get() in MODERN_PROTOCOL_VERSIONS:
            return listed
        return [resource for resource in listed if "://" in str(resource.uri)]


class _StrictTool(Registered):
    """Refuses unknown arguments, and reports errors in one line."""

    async def run(
        self, arguments: dict[str, Any], context: Any, convert_result: bool = False
    ) -> Any:
        for name in sorted(arguments.keys() - self.parameters["properties"].keys()):
            raise ToolError(f"invalid_input: {name}: unknown argument of {self.name}")
        try:
            return await super().run(arguments, context, convert_result)
        except UnexpectedToolError as error:
            if isinstance(error.__cause__, LanewayError):
                raise ToolError(_message(error.__cause__)) from None
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_validation_message(error.__cause__)) from None
            raise


def _tools() -> dict[str, Registered]:
    methods = Tools(_client.get)
    made: dict[str, Registered] = {}
    for name, tool in TOOLS.items():
        annotations = ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        )
        work = (
            getattr(methods, name)
            if tool.operation is None
            else tool_of(tool.operation, _client.get, tool.without)
        )
        made[name] = _StrictTool.from_function(work, annotations=annotations)
        made[name].parameters["additionalProperties"] = False
    return made


async def _read_status() -> str:
    try:
        return json.dumps((await _client.get().read_status()).to_dict())
    except LanewayError as error:
        raise ResourceError(_message(error)) from None


async def _read_job(job_id: str) -> str:
    client = _client.get()
    try:
        return json.dumps(briefly(await client.review_job(await find_id(client, job_id))))
    except NotFound as error:
        raise ResourceNotFoundError(_message(error)) from None
    except LanewayError as error:
        raise ResourceError(_message(error)) from None


def _message(error: LanewayError) -> str:
    """An error for an assistant: the stable code, then the API's message."""
    return f"{error.code}: {error}"


def _validation_message(error: ValidationError) -> str:
    rules = (
        f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
    )
    return f"invalid_input: {'; '.join(rules)}"


@contextmanager
def _logging_unchanged() -> Iterator[None]:
    """Keep the MCP package from configuring the root logger, which it does if it has no handler."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
