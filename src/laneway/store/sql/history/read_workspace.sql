-- The workspace of the object that a change is about; null where it has none.
select coalesce(h.after, h.before) ->> 'workspace' from laneway.control_history h where h.id = %(id)s::bigint
