-- Ends what a dead process held: the culprit is charged, the rest is not.
select laneway.bury(%(worker)s::uuid, %(hung)s::boolean, %(culprit)s::bigint, %(message)s::text,
                    %(began)s::bigint[])
