-- Renews limits held outside of jobs; answers those whose lease had lapsed.
select h from laneway.renew_holds(%(holds)s::uuid[], %(lease)s::double precision) h
