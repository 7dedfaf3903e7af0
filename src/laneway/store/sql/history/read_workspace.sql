-- The workspace of a changed object; null if it has none.
select coalesce(h.after, h.before) ->> 'workspace' from laneway.control_history h where h.id = %(id)s::bigint
