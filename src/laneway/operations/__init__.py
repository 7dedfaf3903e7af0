"""The operations of Laneway, each declared once for every door.

operation.py   the declaration: method, path, permission, scope, input, output. Start here.
lanes.py       the operations on lanes; limits.py on limits; schedules.py on schedules;
               access.py on principals, roles, grants and tokens; audit.py on the audit;
               job_types.py on published job types; flows.py on flows;
               webhooks.py on webhooks;
               workers.py on the pause gate, frozen lanes and statistics
catalog.py     all of them, by name
models.py      pydantic models made from the types of the domain, for OpenAPI and assistants

The doors derive from these: `api/operations.py` the routes, `http/declared.py` the methods of the
client, `cli/connection.py` the calls of commands, `mcp/declared.py` the tools.
`control/operators/` says how each is done in a database. Imports domain and errors only.
"""
