-- Renews limits held outside of jobs; returns those whose lease had lapsed.
select h from laneway.renew_holds(%(holds)s::uuid[], %(lease)s::double precision) h
