-- Acquires one of each limit for a process outside of jobs, with a lease, all or none.
select answer, wait_s
  from laneway.hold_limits(%(hold)s::uuid, %(holder)s::uuid, %(host)s::text, %(names)s::text[], %(rank)s::integer,
                           %(lease)s::double precision)
