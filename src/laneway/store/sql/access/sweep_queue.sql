-- Stops counting jobs of a principal that have started or ended; answers how many.
select laneway.sweep_queued(%(principal)s::uuid)
