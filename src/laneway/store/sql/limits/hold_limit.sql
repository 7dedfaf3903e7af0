-- Lets a process hold one of each limit outside of jobs, for a lease, all or none.
select answer, wait_s
  from laneway.hold_limits(%(hold)s::uuid, %(holder)s::uuid, %(host)s::text, %(names)s::text[], %(rank)s::integer,
                           %(lease)s::double precision)
