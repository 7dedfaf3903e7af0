-- Ends what a dead process held: the culprit is charged, the rest is not.
select laneway.bury(%(worker)s::uuid, %(culprit)s::bigint, %(message)s::text)
