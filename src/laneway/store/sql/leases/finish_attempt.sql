-- Completes the job in the caller's transaction, only for the running attempt and unless it is cancelled.
select laneway.finish_in_transaction(%(seq)s::bigint, %(attempt)s::integer, %(result)s::text, %(ran)s::double precision)
