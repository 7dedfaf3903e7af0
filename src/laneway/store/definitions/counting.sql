-- Counts matching jobs per state. Reads at most p_bound + 1 rows per state table, fewer where a row costs more, the
-- newest where that is free, so that the cost does not depend on the number of jobs. is_capped: the state has more jobs
-- than were read, so more than `counted` may match. p_within as in laneway.search_jobs; jobs of an owner that it
-- names are found by their owner. p_with_waiting: also `waiting`, which servers of earlier versions do not know.
create or replace function laneway.count_states(
    p_bound integer, p_lane text, p_job_type text, p_tag text, p_workspace text, p_since timestamptz,
    p_until timestamptz, p_older_than_s double precision, p_newer_than_s double precision, p_within jsonb,
    p_with_waiting boolean default false)
returns table (status text, counted integer, is_capped boolean)
language plpgsql stable
-- Planned per filter: null parameters cost nothing, not even a read of the jobs.
set jit = off
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
    v_until  timestamptz := least(p_until, clock_timestamp() - make_interval(secs => p_older_than_s));
    v_since  timestamptz := greatest(p_since, clock_timestamp() - make_interval(secs => p_newer_than_s));
    v_owners text[] := coalesce((select array_agg(distinct t.owner) from jsonb_to_recordset(p_within) as t (owner text)
                                  where t.owner is not null), '{}');
    -- Whether jobs of other owners are read, and of which workspaces, if not all.
    v_wide   boolean := p_within is null or exists (
                 select from jsonb_to_recordset(p_within) as t (owner text) where t.owner is null);
    v_places text[];
    v_by_type boolean := p_within is not null or p_lane is not null or p_job_type is not null;
    v_by_job boolean := p_within is not null or p_workspace is not null or p_tag is not null or v_since is not null
                 or v_until is not null;
    v_look   integer := least(p_bound, case when v_by_job then 1500 when v_by_type then 5000 else p_bound end);
begin
    -- No condition: entries of indexes are counted, and no row is copied.
    if not v_by_type and not v_by_job then
        return query
        with recursive met as (
            (select o.workspace from laneway.outcome o order by o.workspace limit 1)
            union all
            select (select o.workspace from laneway.outcome o where o.workspace > m.workspace order by o.workspace limit 1)
              from met m where m.workspace is not null
        ), places as materialized (
            select m.workspace from met m where m.workspace is not null limit 1001
        ), sizes (n, status, size) as (
            select 1, 'pending',
                   (select count(*) from (select from laneway.ready w where w.job_type >= E'\x01' and w.job_type < E'\x02'
                                           limit p_bound + 1) x)
                 + (select count(*) from (select from laneway.delayed d where d.job_type >= E'\x01' and d.job_type < E'\x02'
                                           order by d.seq desc limit p_bound + 1) x)
                 + (select count(*) from (select from laneway.lease l where l.job_type >= E'\x01' and l.job_type < E'\x02'
                                           order by l.seq desc limit p_bound + 1) x)
            union all
            select 2, 'awaiting_approval',
                   (select count(*) from (select from laneway.awaiting a order by a.seq desc limit p_bound + 1) x)
            union all
            select 3, 'waiting',
                   (select count(*) from (select from laneway.waiting q where p_with_waiting
                                           order by q.seq desc limit p_bound + 1) x)
            union all
            select 4, 'approved',
                   (select count(*) from (select from laneway.ready w where w.job_type >= E'\x02' limit p_bound + 1) x)
                 + (select count(*) from (select from laneway.delayed d where d.job_type not like E'\x01%'
                                           order by d.seq desc limit p_bound + 1) x)
                 + (select count(*) from (select from laneway.key_waiters b order by b.seq desc limit p_bound + 1) x)
            union all
            select 5, 'running',
                   (select count(*) from (select from laneway.lease l where l.job_type not like E'\x01%'
                                           order by l.seq desc limit p_bound + 1) x)
            union all
            select 5 + s.n, s.status, (select count(*) from (
                       select from places p
                        cross join lateral (
                            select from laneway.outcome o where o.workspace = any (array[p.workspace]) and o.status = s.status
                             order by o.workspace, o.seq desc limit p_bound + 1) e
                        limit p_bound + 1) x)
              from unnest(array['completed', 'failed', 'cancelled']) with ordinality as s (status, n)
        )
        select z.status, least(z.size, p_bound)::integer,
               z.size > p_bound or (z.n > 5 and (select count(*) from places) > 1000)
          from sizes z where p_with_waiting or z.status <> 'waiting' order by z.n;
        return;
    end if;
    select case when count(*) > count(t.workspace) then null else array_agg(distinct t.workspace) end into v_places
      from jsonb_to_recordset(p_within) as t (owner text, workspace text) where t.owner is null;
    if p_workspace is not null then
        v_places := case when v_places is null or p_workspace = any (v_places) then array[p_workspace] else '{}' end;
    end if;
    return query
    with recursive met as (
        (select o.workspace from laneway.outcome o where v_wide and v_places is null order by o.workspace limit 1)
        union all
        select (select o.workspace from laneway.outcome o where o.workspace > m.workspace order by o.workspace limit 1)
          from met m where m.workspace is not null
    ), places as materialized (
        (select m.workspace from met m where m.workspace is not null limit 1001)
        union all
        select p from unnest(v_places) p where v_wide
    ), own as materialized (
        select j.* from unnest(v_owners) n
         cross join lateral (select x.seq, x.job_type, x.workspace from laneway.jobs x
                              where (x.created_by collate "C", x.seq) < (n, 9223372036854775807)
                                and (x.created_by collate "C", x.seq) >= (n, 0) and x.created_by is not null
                              -- By the index of owners, as in laneway.search_jobs.
                              order by x.created_by collate "C" desc, x.seq desc limit v_look + 1) j
    ), looked as materialized (
        select s.status, 1 as source, e.* from unnest(array['completed', 'failed', 'cancelled']) s (status)
         cross join lateral (
            select x.* from places p
             cross join lateral (
                select o.seq, case when v_by_type then o.job_type end as job_type, o.workspace,
                       case when v_by_type then nullif(o.lane, 'analysis') end as lane
                  from laneway.outcome o where o.workspace = any (array[p.workspace]) and o.status = s.status
                 -- By the index of both, as in laneway.ended_seqs.
                 order by o.workspace, o.seq desc limit v_look + 1) x
             limit v_look + 1) e
        union all
        (select 'running', 2, l.seq, l.job_type, l.workspace, l.lane from laneway.lease l
          where v_wide and l.job_type not like E'\x01%' order by l.seq desc limit v_look + 1)
        union all
        (select 'approved', 3, w.seq, w.job_type, null, null from laneway.ready w
          where v_wide and w.job_type >= coalesce(p_job_type, E'\x02') and (p_job_type is null or w.job_type = p_job_type)
          limit v_look + 1)
        union all
        (select 'approved', 4, d.seq, d.job_type, null, null from laneway.delayed d
          where v_wide and d.job_type not like E'\x01%' order by d.seq desc limit v_look + 1)
        union all
        (select 'approved', 5, b.seq, b.job_type, b.workspace, null from laneway.key_waiters b
          where v_wide order by b.seq desc limit v_look + 1)
        union all
        (select 'awaiting_approval', 6, a.seq, a.job_type, a.workspace, null from laneway.awaiting a
          where v_wide order by a.seq desc limit v_look + 1)
        union all
        (select 'waiting', 10, q.seq, q.job_type, null, null from laneway.waiting q
          where v_wide and p_with_waiting order by q.seq desc limit v_look + 1)
        union all
        (select 'pending', 7, w.seq, w.job_type, null, null from laneway.ready w
          where v_wide and w.job_type >= E'\x01' and w.job_type < E'\x02'
            and (p_job_type is null or w.job_type = laneway.analysis_of(p_job_type)) limit v_look + 1)
        union all
        (select 'pending', 8, d.seq, d.job_type, null, null from laneway.delayed d
          where v_wide and d.job_type >= E'\x01' and d.job_type < E'\x02' order by d.seq desc limit v_look + 1)
        union all
        (select 'pending', 9, l.seq, l.job_type, l.workspace, null from laneway.lease l
          where v_wide and l.job_type >= E'\x01' and l.job_type < E'\x02' order by l.seq desc limit v_look + 1)
        union all
        select case when o.seq is not null then o.status
                    when coalesce(l.job_type, w.job_type, d.job_type) like E'\x01%' then 'pending'
                    when l.seq is not null then 'running'
                    when coalesce(w.seq, d.seq, b.seq) is not null then 'approved'
                    when a.seq is not null then 'awaiting_approval' when q.seq is not null then 'waiting' end,
               0, j.seq, j.job_type, j.workspace,
               coalesce(case when l.job_type not like E'\x01%' then l.lane end, nullif(o.lane, 'analysis'))
          from own j
          -- A lookup per row, whatever the statistics are.
          left join lateral (select x.seq, x.status, x.lane from laneway.outcome x where x.seq = j.seq offset 0) o on true
          left join lateral (select x.seq, x.job_type, x.lane from laneway.lease x where o.seq is null and x.seq = j.seq offset 0) l on true
          left join lateral (select x.seq, x.job_type from laneway.ready x where o.seq is null and x.seq = j.seq offset 0) w on true
          left join lateral (select x.seq, x.job_type from laneway.delayed x where o.seq is null and x.seq = j.seq offset 0) d on true
          left join lateral (select x.seq from laneway.key_waiters x where o.seq is null and x.seq = j.seq offset 0) b on true
          left join lateral (select x.seq from laneway.awaiting x where o.seq is null and x.seq = j.seq offset 0) a on true
          left join lateral (select x.seq from laneway.waiting x where o.seq is null and x.seq = j.seq offset 0) q on true
    ), kinds as materialized (
        -- The columns that decide the lane, once per group of equal jobs.
        select c.status, c.lane, count(*) as n, case when v_by_type then ltrim(c.job_type, E'\x01') end as job_type,
               case when p_within is not null then coalesce(c.workspace, j.workspace) end as workspace,
               -- The owner of other jobs does not matter here, and there may be as many owners as jobs.
               case when j.created_by = any (v_owners) then j.created_by end as created_by
          from looked c
          left join lateral (select x.workspace, x.created_by, x.tags, x.created_at from laneway.jobs x
                              where v_by_job and x.seq = c.seq offset 0) j on true
         where (p_job_type is null or ltrim(c.job_type, E'\x01') = p_job_type)
           and (p_workspace is null or coalesce(c.workspace, j.workspace) = p_workspace)
           and (p_tag is null or p_tag = any (j.tags)) and (v_since is null or j.created_at >= v_since)
           and (v_until is null or j.created_at < v_until)
           -- Already found by their owner.
           and (v_owners = '{}' or c.source = 0 or j.created_by is null or j.created_by <> all (v_owners))
         group by 1, 2, 4, 5, 6
    ), more as materialized (
        select c.status from looked c where c.source > 0 group by c.status, c.source having count(*) > v_look
    )
    select s.status, least(k.n, p_bound)::integer,
           k.n > p_bound or (select count(*) from own) > v_look or s.status in (select m.status from more m)
           or (s.n > 5 and (select count(*) from places) > 1000)
      from unnest(array['pending', 'awaiting_approval', 'waiting', 'approved', 'running', 'completed', 'failed', 'cancelled'])
               with ordinality as s (status, n)
     cross join lateral (
        select coalesce(sum(x.n), 0) as n from kinds x
         where x.status = s.status
           and (p_lane is null or coalesce(x.lane, laneway.lane_of(x.job_type)) = p_lane)
           and (p_within is null or laneway.is_within(p_within, x.created_by, x.workspace,
                                                      coalesce(x.lane, laneway.lane_of(x.job_type))))) k
     where p_with_waiting or s.status <> 'waiting'
     order by s.n;
end $$;
