-- Deletes a limit unless something needs it; returns whether it did, and what needs it.
select is_gone, hindrance from laneway.delete_limit(%(name)s::text, %(by)s::text)
