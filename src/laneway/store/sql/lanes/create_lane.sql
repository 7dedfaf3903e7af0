-- Creates a lane unless the name is taken; never overwrites one. Returns whether it did.
insert into laneway.worker_lanes
select l.*
  from jsonb_populate_record(null::laneway.worker_lanes,
                             %(lane)s::jsonb || jsonb_build_object('updated_at', clock_timestamp())) l
on conflict (name) do nothing
returning true
