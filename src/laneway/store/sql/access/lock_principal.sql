-- Reads a principal and locks it and its grants until the transaction ends.
select p.id, p.name, p.kind, p.created_at, p.created_by, p.disabled_at
  from laneway.principals p where p.name = %(name)s::text for no key update
