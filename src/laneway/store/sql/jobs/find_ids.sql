-- Ids that begin with each prefix, given as ranges, in order; a row without an id: there may be more.
select n, id from laneway.find_ids(%(firsts)s::uuid[], %(lasts)s::uuid[], %(limit)s::integer, %(look)s::integer,
                                   %(within)s::jsonb)
