-- Of each limit named how many may hold it at once, and who does.
select h.name, h.max_concurrent, h.holders from laneway.limit_holders(%(names)s::text[], %(most)s::integer) h
