"""The rules of jobs, lanes, claims and access.

Pure: no I/O, no driver, no event loop, no clock that decides anything. Imports `laneway.errors`
and nothing else of Laneway; every other package may import this one.

Start with `states.py` (the life cycle, one table) and `job.py` (the fields of a job).
    claim.py        the fencing token: one attempt of one job
    lane.py         lanes, their ranges, names of lanes and job types
    change_rules.py the settings that a change of a lane, a limit or a schedule may name
    annotations.py  marks on types: ranges, checks, phrases for people
    codec.py        dataclasses as JSON and back, by their types
    payload.py      JSON in and out of PostgreSQL; values that it cannot store are refused
    arguments.py    a handler's parameters: schema, validation, encoding
    retry.py        the wait before the next attempt
    redaction.py    secrets replaced in text that people read
    overview.py, review.py, explanation.py, freeze.py, bulk.py, stats.py, page.py   results
"""
