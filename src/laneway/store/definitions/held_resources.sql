-- Slots, limits and concurrency keys of attempts that ended.

-- Releases the resources of ended attempts, in the order in which claims take them: keys, slots, limits.
-- Returns the jobs that got a key.
create or replace function laneway.release_resources(p_of laneway.held_resources)
returns table (seq bigint, job_type text) language plpgsql volatile as $$
#variable_conflict use_column
declare
    r record;
begin
    if p_of.keys is not null then
        return query select f.seq, f.job_type from laneway.free_keys(p_of.key_spaces, p_of.keys, p_of.key_seqs) f;
    end if;
    for r in select g.lane, g.worker_id, sum(g.n)::integer as n
               from unnest(p_of.lanes, p_of.workers, p_of.slots) as g (lane, worker_id, n)
              group by g.lane, g.worker_id order by g.lane, g.worker_id loop
        perform laneway.count_slots(r.lane, r.worker_id, -r.n);
    end loop;
    if p_of.limit_names is not null then
        for r in select g.worker_id, array_agg(g.name) as names, array_agg(g.n) as counts
                   from unnest(p_of.limit_workers, p_of.limit_names, p_of.limit_counts) as g (worker_id, name, n)
                  group by g.worker_id order by g.worker_id loop
            perform laneway.free_limits(r.worker_id, r.names, r.counts);
        end loop;
    end if;
end $$;

create or replace function laneway.add_resources(a laneway.held_resources, b laneway.held_resources)
returns laneway.held_resources language sql immutable as $$
    select row(a.lanes || b.lanes, a.workers || b.workers, a.slots || b.slots,
               a.key_spaces || b.key_spaces, a.keys || b.keys, a.key_seqs || b.key_seqs,
               a.limit_workers || b.limit_workers, a.limit_names || b.limit_names,
               a.limit_counts || b.limit_counts)::laneway.held_resources
$$;

-- Takes over the resources of attempts finished in their own transaction. Null: none of them was.
create or replace function laneway.pop_self_finished(p_seqs bigint[])
returns laneway.held_resources language plpgsql volatile as $$
declare
    v laneway.held_resources;
begin
    with gone as materialized (
        select f.ctid as tid from laneway.self_finished f where f.seq = any (p_seqs) for update skip locked
    ), taken as (
        delete from laneway.self_finished f where f.ctid = any (array(select g.tid from gone g)) returning f.*
    ), limits as materialized (
        select t.worker_id, m.name from taken t cross join unnest(t.limits) as m (name)
    )
    select array_agg(t.lane), array_agg(t.worker_id), array_agg(1),
           array_agg(t.workspace) filter (where t.concurrency_key is not null),
           array_agg(t.concurrency_key) filter (where t.concurrency_key is not null),
           array_agg(t.seq) filter (where t.concurrency_key is not null),
           (select array_agg(m.worker_id) from limits m), (select array_agg(m.name) from limits m),
           (select array_agg(1) from limits m)
      into v.lanes, v.workers, v.slots, v.key_spaces, v.keys, v.key_seqs, v.limit_workers, v.limit_names, v.limit_counts
      from taken t;
    if v.lanes is null then return null; end if;
    return v;
end $$;

-- Releases resources that workers which died after such a finish, and processes with limits outside of jobs, left
-- behind. Returns how many.
create or replace function laneway.release_self_finished(p_limit integer default 200)
returns integer language plpgsql volatile as $$
declare
    v_seqs bigint[] := array(select f.seq from laneway.self_finished f order by f.seq limit p_limit);
    v_lapsed integer := laneway.sweep_holds(p_limit);
    v laneway.held_resources;
begin
    if v_seqs = '{}' then return v_lapsed; end if;
    v := laneway.pop_self_finished(v_seqs);
    if v.lanes is null then return v_lapsed; end if;
    perform laneway.wake(array(select g.job_type from laneway.release_resources(v) g
                               union all select laneway.freed_types(v.limit_names, v.limit_counts)));
    return cardinality(v.lanes) + v_lapsed;
end $$;
