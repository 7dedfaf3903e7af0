-- The changes of one kind that this transaction has made, oldest first.
select h.id, h.at, h.by, h.kind, h.name, h.before::text, h.after::text
  from laneway.control_history h
 where h.id = any (string_to_array(nullif(current_setting('laneway.changes', true), ''), ',')::bigint[])
   and h.kind = %(kind)s::text
 order by h.id
