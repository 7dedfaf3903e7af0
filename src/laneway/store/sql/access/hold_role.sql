-- Answers whether there is a role, and keeps it from being deleted until the transaction ends.
select r.name from laneway.roles r where r.name = %(name)s::text for key share
