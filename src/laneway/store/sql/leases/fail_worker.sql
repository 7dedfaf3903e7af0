-- Ends the attempts of a dead process: the culprit is charged, the others are not.
select laneway.fail_worker(%(worker)s::uuid, %(hung)s::boolean, %(culprit)s::bigint, %(message)s::text,
                           %(began)s::bigint[])
