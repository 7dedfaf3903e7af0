"""The door for assistants: tools and resources of the Model Context Protocol.

server.py      the server: which tools and resources there are, as whom they ask. Start here.
tools.py       each tool, what it needs and what it may do
declared.py    tools made from declarations (laneway.operations)
outputs.py     what the others answer
stdio.py       for the assistant that started this process
door.py        /mcp on the server: who is let in; exchange.py answers it

Every tool is a request to the HTTP API under somebody's token, so that roles, audit and checks are
those of its routes and nothing is done twice. Uses http, domain and errors; only wiring and cli
may use it. The package `mcp` is imported when the first message comes.
"""
