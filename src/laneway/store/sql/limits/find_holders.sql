-- The maximum of concurrent holders of each named limit, and its holders.
select h.name, h.max_concurrent, h.holders from laneway.limit_holders(%(names)s::text[], %(most)s::integer) h
