-- Deletes a schedule with its slots and records the caller; its jobs stay. Returns whether it existed.
with actor as materialized (
    select set_config('laneway.actor', %(by)s, true)
), gone as (
    delete from laneway.schedules s using actor where s.name = %(name)s returning s.name
), slots as (
    delete from laneway.schedule_slots t using gone g where t.schedule = g.name
)
select true from gone
