-- Deletes a limit unless something needs it. Checks with the lock held, so that no claim comes between.
create or replace function laneway.delete_limit(p_name text, p_by text, out is_gone boolean, out hindrance text)
language plpgsql volatile as $$
begin
    perform pg_advisory_xact_lock(5577006791947779410);
    hindrance := laneway.deletion_blocker('limit', p_name);
    is_gone := false;
    if hindrance is null then
        perform set_config('laneway.actor', p_by, true);
        delete from laneway.limits where name = p_name;
        is_gone := found;
    end if;
end $$;

-- Starts are counted by slices of a rate's period. With another period each counts as if made at the end of its
-- slice, so that a change never allows more than either rate; with another scope, or none, counting restarts.
-- With its owner's rights: a role that may tune a limit needs no write access to the starts.
create or replace function laneway.recount_starts() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
    with counted as (
        delete from laneway.limit_starts s where s.limit_name = old.name
        returning s.site, s.slice, s.started)
    insert into laneway.limit_starts (limit_name, site, slice, started)
    select new.name, c.site, least(c.slice + greatest(laneway.slice_width(old.rate_period_s)
                                                      - laneway.slice_width(new.rate_period_s), 0),
                                   laneway.slice_of(clock_timestamp(), new.rate_period_s)), sum(c.started)
      from counted c
     where tg_op = 'UPDATE' and new.scope = old.scope and new.rate_period_s is not null
     group by 1, 2, 3;
    return null;
end $$;
create or replace trigger recount_starts after update on laneway.limits
    for each row when ((new.rate_period_s, new.scope) is distinct from (old.rate_period_s, old.scope))
    execute function laneway.recount_starts();
create or replace trigger forget_starts after delete on laneway.limits
    for each row execute function laneway.recount_starts();
