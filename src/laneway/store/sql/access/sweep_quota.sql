-- Stops counting jobs of a principal that have started or ended; returns how many.
select laneway.sweep_queued(%(principal)s::uuid)
