-- The newest waits of a job's handler, in the order in which it asked for them, with the events that they took; no payloads.
select name, kind, asked_at, until, ended_at, jobs, event, key, event_id, sent_by, sent_at
  from laneway.asked_waits(%(id)s::uuid, %(limit)s::integer)
