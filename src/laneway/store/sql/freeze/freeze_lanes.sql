-- Drains lanes and remembers what each was; answers which.
select laneway.freeze(%(lanes)s::text[], %(by)s::text)
