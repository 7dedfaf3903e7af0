-- The position of a waiting job by the rules of laneway.claim, for the live worker with the most capacity
-- among those that may claim it.
-- limits: for each limit of its type its free capacity (null: unbounded), the next in turn, and how many earlier due
-- jobs of its lane that a claim would read need it, up to the bound. key_holder: the job that holds its key, or gets
-- it first. ahead: earlier due jobs of its lane; can_run: those of them that no limit delays.
create or replace function laneway.queue_position(
    p_seq bigint, p_bound integer,
    out ahead integer, out can_run integer, out limits jsonb, out key_holder bigint, out key_waits boolean)
language plpgsql volatile as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_me    laneway.ready;
    v_job   laneway.jobs;
    v_lane  text;
    v_needy text[];
    v_needed text[];
    v_rooms integer[];
    v_shut  text[];
    -- Types of the lane; with v_rest, all types in no other lane.
    v_types text[];
    v_rest  boolean;
begin
    select * into v_job from laneway.jobs j where j.seq = p_seq;
    select * into v_me from laneway.ready w where w.seq = p_seq;
    v_lane := laneway.lane_of(coalesce(v_me.job_type, v_job.job_type));
    v_rest := v_lane = 'default';
    v_types := array(select n from laneway.worker_lanes l cross join unnest(l.job_types) n
                      where (l.name = v_lane) <> v_rest);
    select h.seq into key_holder from laneway.key_holders h
     where h.workspace = v_job.workspace and h.concurrency_key = v_job.concurrency_key and h.seq <> p_seq;
    key_waits := exists (select from laneway.key_waiters w where w.seq = p_seq);

    -- As in claim: the types of the lane that need limits, and the capacity of each.
    select array_agg(t.name), array_agg(n) into v_needy, v_needed
      from laneway.job_types t cross join unnest(t.limits) n
     where (t.name = any (v_types)) <> v_rest;
    if v_needy is not null then
        select array_agg(r.room order by p.n) into v_rooms
          from unnest(v_needy, v_needed) with ordinality as p (job_type, limit_name, n)
          left join lateral (
            select case when bool_or(x.room is null) then null else max(x.room) end as room
              from (select w.id from laneway.workers w
                     where w.stopped_at is null and w.seen_at > v_now - interval '45 seconds'
                       and w.drain_requested_at is null and p.job_type = any (w.job_types)
                       and w.concurrency > 0 and (w.room ->> 'is_stopping') is null
                    union all
                    select null where not exists (
                        select from laneway.workers w
                         where w.stopped_at is null and w.seen_at > v_now - interval '45 seconds'
                           and w.drain_requested_at is null and p.job_type = any (w.job_types)
                           and w.concurrency > 0 and (w.room ->> 'is_stopping') is null)) who
             cross join lateral laneway.limit_capacity(array[p.limit_name], who.id, v_now) x) r on true;
        select array_agg(p.job_type) into v_shut
          from unnest(v_needy, v_rooms) as p (job_type, room) where p.room = 0;
    end if;
    if v_me.seq is null then
        select jsonb_agg(jsonb_build_object('name', p.limit_name, 'room', p.room, 'before', 0, 'max', m.max_concurrent,
                       'next', laneway.next_in_turn(p.limit_name))
                         order by p.limit_name)
          into limits from unnest(v_needy, v_needed, v_rooms) as p (job_type, limit_name, room)
          left join laneway.limits m on m.name = p.limit_name
         where p.job_type = v_job.job_type;
        return;
    end if;

    with recursive met as (
        -- Waiting types are read only if the lane does not name its own.
        (select r.job_type from laneway.ready r where v_rest or v_lane = 'analysis' order by r.job_type limit 1)
        union all
        select (select r.job_type from laneway.ready r where r.job_type > t.job_type order by r.job_type limit 1)
          from met t where t.job_type is not null
    ), types as (
        select m.job_type from met m
         where case when v_lane = 'analysis' then m.job_type like E'\x01%'
                    else m.job_type not like E'\x01%' and m.job_type <> all (v_types) end
        union all
        select n from unnest(v_types) n where not v_rest
    ), before as materialized (
        select a.* from (select t.job_type from types t
                          where t.job_type is not null) t
         cross join (values (true), (false)) f (fresh)
         cross join lateral (
            select r.seq, r.job_type, r.rank, r.sealed from laneway.ready r
             where r.job_type = t.job_type and r.fresh = f.fresh and (r.rank, r.seq) < (v_me.rank, v_me.seq)
             order by r.rank, r.seq limit p_bound + 1) a
          left join laneway.job_types p on p.name = a.job_type and (p.approval <> 'never' or p.has_analysis)
         -- As in lacking_approval: a claim sends the others back, and their slots, keys and limits stay free.
         where a.sealed or p.name is null or (p.approval = 'never' and exists (
               select from laneway.approvals d where d.seq = a.seq and d.analysis is not null))
         limit p_bound + 1
    ), seen as materialized (
        select b.* from before b where b.job_type <> all (coalesce(v_shut, '{}'))
    ), over as materialized (
        select x.seq from (
            select b.seq, r.room, row_number() over (partition by r.limit_name order by b.rank, b.seq) as place
              from unnest(v_needy, v_needed, v_rooms) as r (job_type, limit_name, room)
              join seen b on b.job_type = r.job_type) x
         where x.place > x.room
    )
    select (select count(*) from before), (select count(*) from seen) - (select count(distinct o.seq) from over o),
           (select jsonb_agg(jsonb_build_object('name', p.limit_name, 'room', p.room, 'max', m.max_concurrent,
                       'next', laneway.next_in_turn(p.limit_name), 'before',
                       (select count(*) from seen b
                         where b.job_type in (select q.job_type from unnest(v_needy, v_needed) as q (job_type, limit_name)
                                               where q.limit_name = p.limit_name))) order by p.limit_name)
              from unnest(v_needy, v_needed, v_rooms) as p (job_type, limit_name, room)
              left join laneway.limits m on m.name = p.limit_name
             where p.job_type = v_me.job_type),
           coalesce(key_holder, (
               select b.seq from seen b join laneway.jobs j on j.seq = b.seq
                where v_job.concurrency_key is not null and j.concurrency_key = v_job.concurrency_key
                  and j.workspace = v_job.workspace and b.job_type not like E'\x01%'
                  and b.seq not in (select o.seq from over o)
                  and not exists (select from laneway.key_holders h
                                   where h.workspace = v_job.workspace and h.concurrency_key = v_job.concurrency_key)
                order by b.rank, b.seq limit 1))
      into ahead, can_run, limits, key_holder;
    if v_me.job_type like E'\x01%' then key_holder := null; end if;
end $$;

-- Recent statistics for an estimate: ends per second in the lane within a quarter of an hour, the run time of jobs of the
-- type, the run times of the most frequent types of the lane, and of all its jobs, all from the newest ended jobs.
create or replace function laneway.recent_pace(
    p_lane text, p_job_type text, out per_s double precision, out run_s double precision, out type_run_s jsonb,
    out lane_run_s double precision)
language sql stable as $$
    with o as materialized (
        select x.lane, x.job_type, x.started_at, x.finished_at,
               x.finished_at > clock_timestamp() - interval '15 minutes' as is_new
          from laneway.outcome x order by x.seq desc limit 10000)
    select count(*) filter (where o.lane = p_lane and o.is_new)
             / greatest(extract(epoch from clock_timestamp() - min(o.finished_at) filter (where o.lane = p_lane and o.is_new)), 1),
           avg(extract(epoch from o.finished_at - o.started_at)) filter (where o.job_type = p_job_type and o.lane <> 'analysis'),
           (select jsonb_object_agg(t.job_type, t.run_s)
              from (select r.job_type, avg(extract(epoch from r.finished_at - r.started_at)) as run_s
                      from o r where r.lane = p_lane and r.started_at is not null
                     group by r.job_type order by count(*) desc limit 100) t),
           avg(extract(epoch from o.finished_at - o.started_at)) filter (where o.lane = p_lane)
      from o
$$;
