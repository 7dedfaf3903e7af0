-- Returns whether a role exists, and blocks its deletion until the transaction ends.
select r.name from laneway.roles r where r.name = %(name)s::text for key share
