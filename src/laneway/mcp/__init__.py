"""Tools and resources for assistants, by the Model Context Protocol.

server.py         the server: its tools and resources, and the client they use. Start here.
tools.py          each tool with its permission and effects
declared.py       tools made from declarations (laneway.operations)
outputs.py        the results of the other tools, mostly made from types of the domain
stdio.py          serves the assistant that started this process
endpoint.py       authenticates /mcp on the server; exchange.py handles the message
large_payload.py  keeps large payloads away from the MCP package
unreadable.py     errors for messages that are not valid JSON

Every tool sends a request to the HTTP API with the caller's token, so that its roles, audit and
checks apply. Uses http, domain and errors; only app and cli may use it. The package `mcp` is
imported when the first message arrives.
"""

from laneway.extras import require

require("mcp", "MCP")
