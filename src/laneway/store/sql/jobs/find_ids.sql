-- Ids that begin with each prefix, given as ranges, and have its end, in order; a row without an id: there may be more.
select n, id from laneway.find_ids(%(firsts)s::uuid[], %(lasts)s::uuid[], %(limit)s::integer, %(look)s::integer,
                                   %(within)s::jsonb, %(ends)s::text[], %(end_look)s::integer)
