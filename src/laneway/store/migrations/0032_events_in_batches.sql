-- phase: pre
-- safe-with: 0.1.0
-- Gives the functions their version: events are sent in batches, and resumed handlers read their waits in batches, with
-- the answers. The lanes that every database begins with are polled every 2 s instead of every second, unless somebody has
-- changed them: a worker that has nothing to do then sends half as many statements. Notifications start jobs at once.
update laneway.worker_lanes set poll_interval_ms = 2000
 where name in ('analysis', 'default') and poll_interval_ms = 1000
   and updated_by in ('laneway', 'laneway db migrate', current_user);
