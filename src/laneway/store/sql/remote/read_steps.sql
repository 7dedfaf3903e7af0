-- Finished steps of the named jobs in the order they finished, of as many of these jobs as fit.
-- Each with the total bytes of its job; without steps if the job alone exceeds `largest`, or does not fit.
select z.seq, z.size, s.name, s.result::text, s.took_s
  from (select y.seq, y.n, y.size,
               sum(y.size) filter (where y.size <= %(largest)s::bigint) over (order by y.n) as total
          from (select g.seq, g.n, b.size
                  from unnest(%(seqs)s::bigint[]) with ordinality as g (seq, n)
                 cross join lateral (
                    select sum(32 + octet_length(x.name) + octet_length(x.result::text)) as size
                      from laneway.steps x where x.seq = g.seq offset 0) b
                 where b.size is not null) y) z
  left join lateral (
    select x.* from laneway.steps x
     where x.seq = z.seq and z.size <= %(largest)s::bigint and (z.total <= %(most)s::bigint or z.total = z.size)
    offset 0) s on true
 order by z.n, s.at
