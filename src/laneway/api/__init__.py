"""The HTTP API: parse, check a permission, call one control verb, render.

app.py      builds the application
mounted.py  the API inside another application
routes/     one module per resource
operations.py   routes made from declarations (laneway.operations)
models/     request and response schemas
http/       authentication, bodies, errors, paging, the server itself

Live events come from laneway.streams, bulk runs from laneway.control.bulk_runs.
"""

from laneway.extras import require

require("server", "the HTTP API")
