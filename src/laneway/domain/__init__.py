"""What a job, a lane and a claim are, and the rules that hold for them.

Pure: no I/O, no driver, no event loop, no time that decides anything. Imports `laneway.errors`
and nothing else of ours; every other room may import this one.

Start with `states.py` (the life cycle, one table) and `job.py` (the fields every door shows).
    claim.py      the fencing token: which attempt of which job
    lane.py       lanes, their ranges, names of lanes and job types
    settings.py   what a change of a lane, a limit or a schedule may name
    payload.py    JSON in and out of PostgreSQL, with every hostile value refused by name
    arguments.py  a handler's parameters: schema, validation, encoding
    retry.py      how long to wait before the next attempt
    overview.py, review.py, explanation.py, freeze.py, bulk.py, stats.py, page.py   what is answered
"""
