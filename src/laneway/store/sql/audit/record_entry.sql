-- Adds one audit entry in the transaction of its change.
insert into laneway.audit (actor, principal_id, door, action, kind, name, workspace, outcome, before, after,
                           request_id, address)
values (%(actor)s, %(principal)s, %(door)s, %(action)s, %(kind)s, %(name)s, %(workspace)s, %(outcome)s,
        %(before)s::jsonb, %(after)s::jsonb, %(request)s, %(address)s)
