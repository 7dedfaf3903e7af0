-- phase: pre
-- safe-with: 0.1.0
-- Functions get plain names. definitions/older_names.sql keeps the names that landed code calls. The other old
-- functions stay until a later migration drops them: transactions that run while definitions/ are replaced still call
-- them.

-- The resources of ended attempts, to be released: slots by lane and worker, keys, limits by worker. Replaces the type
-- belongings.
create type laneway.held_resources as (
    lanes text[], workers uuid[], slots integer[],
    key_spaces text[], keys text[], key_seqs bigint[],
    limit_workers uuid[], limit_names text[], limit_counts integer[]
);

-- Only a trigger called these two functions: both change together.
create function laneway.clear_schedule_error() returns trigger language plpgsql as $$
begin
    new.error := null;
    return new;
end $$;
create function laneway.notify_schedulers() returns trigger language plpgsql as $$
begin
    perform pg_notify('laneway', 'schedules');
    return null;
end $$;
lock table laneway.schedules in access exclusive mode;
drop trigger if exists forgive_schedule on laneway.schedules;
drop trigger if exists tell_schedulers on laneway.schedules;
drop function if exists laneway.forgive_schedule();
drop function if exists laneway.tell_schedulers();
create trigger clear_schedule_error before insert or update on laneway.schedules
    for each row when (new.enabled and new.error is not null) execute function laneway.clear_schedule_error();
create trigger notify_schedulers after insert or update or delete on laneway.schedules
    for each statement execute function laneway.notify_schedulers();
