-- Releases limits held outside of jobs, once.
select laneway.drop_holds(%(holds)s::uuid[])
