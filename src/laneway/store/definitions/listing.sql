-- Jobs that match a filter, newest first, at most p_limit before p_before: one query per status, each
-- driven by the table that holds it, for a filter on the derived status would read everything.
-- Null narrows nothing; p_older_than_s and p_newer_than_s count by this clock. p_q is searched in every
-- job of that status until the page is full. p_within: whose, and of which workspace and lanes, at least one must fit;
-- where all are of one owner, the jobs of that owner drive the query and nobody else's are read.
drop function if exists laneway.matching(text, bigint, integer, text, text, text, text, text, timestamptz, timestamptz,
    double precision, double precision, text, numeric, text);
create or replace function laneway.matching(
    p_status text, p_before bigint, p_limit integer, p_lane text, p_job_type text, p_tag text, p_worker text,
    p_workspace text, p_since timestamptz, p_until timestamptz, p_older_than_s double precision,
    p_newer_than_s double precision, p_q text, p_max_cost numeric, p_unit text, p_within jsonb default null)
returns table (seq bigint, id uuid)
language plpgsql volatile
-- Planned for the filter at hand: what is null costs nothing.
set jit = off
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_until timestamptz := least(p_until, clock_timestamp() - make_interval(secs => p_older_than_s));
    v_since timestamptz := greatest(p_since, clock_timestamp() - make_interval(secs => p_newer_than_s));
    -- Whose jobs they must be, if all terms say the same.
    v_owner text := (select min(t.owner) from jsonb_to_recordset(p_within) as t (owner text)
                     having count(*) = count(t.owner) and count(distinct t.owner) = 1);
begin
    if v_owner is not null then
        return query
        select v.seq, v.id from (
            select j.seq from laneway.jobs j
             where j.created_by collate "C" = v_owner and j.seq < p_before and (p_job_type is null or j.job_type = p_job_type)
               and (p_workspace is null or j.workspace = p_workspace)
               -- Cheap to tell, before the view is asked.
               and case when p_status in ('completed', 'failed', 'cancelled')
                        then (select o.status from laneway.outcome o where o.seq = j.seq) = p_status
                        when p_status = 'running' then (select true from laneway.lease l where l.seq = j.seq)
                        when p_status = 'awaiting_approval' then (select true from laneway.awaiting a where a.seq = j.seq)
                        else p_status is null or (select true from laneway.outcome o where o.seq = j.seq) is null end
             order by j.seq desc) o
         cross join lateral (select t.* from laneway.jobs_view t where t.seq = o.seq offset 0) v
         where (p_status is null or v.status = p_status) and (p_lane is null or v.lane = p_lane)
           and (p_tag is null or p_tag = any (v.tags)) and (v_since is null or v.created_at >= v_since)
           and (v_until is null or v.created_at < v_until)
           and (p_worker is null or v.worker = p_worker or v.claimed_by::text = p_worker)
           and (p_q is null or laneway.mentions(p_q, v.id, v.job_type, v.error, v.payload))
           and (p_max_cost is null or laneway.costs_at_most(v.seq, p_max_cost, p_unit))
           and laneway.is_within(p_within, v.created_by, v.workspace, v.lane)
         order by o.seq desc limit p_limit;
    elsif p_status is null then
        return query
        select v.seq, v.id from laneway.jobs_view v
         where v.seq < p_before and (p_job_type is null or v.job_type = p_job_type)
           and (p_workspace is null or v.workspace = p_workspace) and (p_lane is null or v.lane = p_lane)
           and (p_tag is null or p_tag = any (v.tags)) and (v_since is null or v.created_at >= v_since)
           and (v_until is null or v.created_at < v_until)
           and (p_worker is null or v.worker = p_worker or v.claimed_by::text = p_worker)
           and (p_q is null or laneway.mentions(p_q, v.id, v.job_type, v.error, v.payload))
           and (p_max_cost is null or laneway.costs_at_most(v.seq, p_max_cost, p_unit))
           and (p_within is null or laneway.is_within(p_within, v.created_by, v.workspace, v.lane))
         order by v.seq desc limit p_limit;
    elsif p_status in ('completed', 'failed', 'cancelled') then
        return query
        select v.seq, v.id from (
            select o.seq from laneway.outcome o
             where o.status = p_status and o.seq < p_before and (p_job_type is null or o.job_type = p_job_type)
               and (p_workspace is null or o.workspace = p_workspace) order by o.seq desc) o
         cross join lateral (select t.* from laneway.jobs_view t where t.seq = o.seq offset 0) v
         where (p_lane is null or v.lane = p_lane)
           and (p_tag is null or p_tag = any (v.tags)) and (v_since is null or v.created_at >= v_since)
           and (v_until is null or v.created_at < v_until)
           and (p_worker is null or v.worker = p_worker or v.claimed_by::text = p_worker)
           and (p_q is null or laneway.mentions(p_q, v.id, v.job_type, v.error, v.payload))
           and (p_max_cost is null or laneway.costs_at_most(v.seq, p_max_cost, p_unit))
           and (p_within is null or laneway.is_within(p_within, v.created_by, v.workspace, v.lane))
         order by o.seq desc limit p_limit;
    elsif p_status = 'running' then
        return query
        select v.seq, v.id from (
            select l.seq from laneway.lease l
             where l.seq < p_before and l.job_type not like E'\x01%'
               and (p_job_type is null or l.job_type = p_job_type)
               and (p_workspace is null or l.workspace = p_workspace) order by l.seq desc) l
         cross join lateral (select t.* from laneway.jobs_view t where t.seq = l.seq offset 0) v
         where (p_lane is null or v.lane = p_lane)
           and (p_tag is null or p_tag = any (v.tags)) and (v_since is null or v.created_at >= v_since)
           and (v_until is null or v.created_at < v_until)
           and (p_worker is null or v.worker = p_worker or v.claimed_by::text = p_worker)
           and (p_q is null or laneway.mentions(p_q, v.id, v.job_type, null, v.payload))
           and (p_max_cost is null or laneway.costs_at_most(v.seq, p_max_cost, p_unit))
           and (p_within is null or laneway.is_within(p_within, v.created_by, v.workspace, v.lane))
         order by l.seq desc limit p_limit;
    else
        return query
        select v.seq, v.id from (
            (select w.seq from laneway.ready w
              where p_status = 'approved' and w.seq < p_before and w.job_type not like E'\x01%'
                and (p_job_type is null or w.job_type = p_job_type) order by w.seq desc)
            union all
            (select d.seq from laneway.delayed d
              where p_status = 'approved' and d.seq < p_before and d.job_type not like E'\x01%'
                and (p_job_type is null or d.job_type = p_job_type) order by d.seq desc)
            union all
            (select b.seq from laneway.key_waiters b
              where p_status = 'approved' and b.seq < p_before
                and (p_job_type is null or b.job_type = p_job_type) order by b.seq desc)
            union all
            (select a.seq from laneway.awaiting a
              where p_status = 'awaiting_approval' and a.seq < p_before
                and (p_job_type is null or a.job_type = p_job_type) order by a.seq desc)
            union all
            (select w.seq from laneway.ready w
              where p_status = 'pending' and w.seq < p_before and w.job_type >= E'\x01' and w.job_type < E'\x02'
                and (p_job_type is null or w.job_type = laneway.analysis_of(p_job_type)) order by w.seq desc)
            union all
            (select d.seq from laneway.delayed d
              where p_status = 'pending' and d.seq < p_before and d.job_type >= E'\x01' and d.job_type < E'\x02'
                and (p_job_type is null or d.job_type = laneway.analysis_of(p_job_type)) order by d.seq desc)
            union all
            (select l.seq from laneway.lease l
              where p_status = 'pending' and l.seq < p_before and l.job_type >= E'\x01' and l.job_type < E'\x02'
                and (p_job_type is null or l.job_type = laneway.analysis_of(p_job_type)) order by l.seq desc)
            order by seq desc) k
         cross join lateral (select t.* from laneway.jobs_view t where t.seq = k.seq offset 0) v
         where (p_workspace is null or v.workspace = p_workspace) and (p_lane is null or v.lane = p_lane)
           and (p_tag is null or p_tag = any (v.tags)) and (v_since is null or v.created_at >= v_since)
           and (v_until is null or v.created_at < v_until)
           and (p_worker is null or v.worker = p_worker or v.claimed_by::text = p_worker)
           and (p_q is null or laneway.mentions(p_q, v.id, v.job_type, null, v.payload))
           and (p_max_cost is null or laneway.costs_at_most(v.seq, p_max_cost, p_unit))
           and (p_within is null or laneway.is_within(p_within, v.created_by, v.workspace, v.lane))
         order by k.seq desc limit p_limit;
    end if;
end $$;

-- Whether a text is found, in either case, in what people search a job by; the cheapest places first.
create or replace function laneway.mentions(p_text text, p_id uuid, p_job_type text, p_error jsonb, p_payload jsonb)
returns boolean language sql immutable as $$
    select strpos(p_id::text, lower(p_text)) > 0 or strpos(lower(p_job_type), lower(p_text)) > 0
        or strpos(lower(concat(p_error ->> 'type', ': ', p_error ->> 'message')), lower(p_text)) > 0
        or strpos(lower(p_payload::text), lower(p_text)) > 0
$$;

-- Whether a job's analysis said a cost of at most this; one that said none did not.
create or replace function laneway.costs_at_most(p_seq bigint, p_cost numeric, p_unit text)
returns boolean language sql stable as $$
    select exists (select from laneway.approvals a where a.seq = p_seq and a.cost <= p_cost
                      and (p_unit is null or a.unit = p_unit))
$$;

-- Whether a job is among those that somebody may reach: one of the terms holds, and in it all that is said.
create or replace function laneway.is_within(p_within jsonb, p_owner text, p_workspace text, p_lane text)
returns boolean language sql immutable as $$
    select exists (select from jsonb_to_recordset(p_within) as t (owner text, workspace text, lanes text[])
                    where (t.owner is null or t.owner = p_owner) and (t.workspace is null or t.workspace = p_workspace)
                      and (t.lanes is null or p_lane = any (t.lanes)))
$$;
