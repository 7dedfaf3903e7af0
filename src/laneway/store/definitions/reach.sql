-- Whether a caller may reach a job: at least one term matches in all its fields.
create or replace function laneway.is_within(p_within jsonb, p_owner text, p_workspace text, p_lane text)
returns boolean language sql immutable as $$
    select exists (select from jsonb_to_recordset(p_within) as t (owner text, workspace text, lanes text[])
                    where (t.owner is null or t.owner = p_owner) and (t.workspace is null or t.workspace = p_workspace)
                      and (t.lanes is null or p_lane = any (t.lanes)))
$$;

-- Ids of jobs in each range, at most p_limit per range, in order and by index. It examines p_look jobs of a range, or of
-- all ranges together with p_within, which is as in search_jobs. If there are more jobs, or more than p_limit match, a last
-- row has no id; but a range without a job in reach says nothing of others, however many it has. p_ends: the last digits
-- that ids of a range must have, null for any; of such a range it examines p_end_look jobs.
create or replace function laneway.find_ids(
    p_firsts uuid[], p_lasts uuid[], p_limit integer, p_look integer, p_within jsonb default null,
    p_ends text[] default null, p_end_look integer default 2000)
returns table (n bigint, id uuid)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_n      bigint;
    v_first  uuid;
    v_last   uuid;
    v_end    text;
    v_ids    uuid[];
    v_any    boolean;
    v_looked integer;
    v_look   integer := p_look;
begin
    for v_n, v_first, v_last, v_end in
        select r.n, r.first, r.last, r.ending
          from unnest(p_firsts, p_lasts, p_ends) with ordinality as r (first, last, ending, n)
    loop
        if p_within is null then
            v_look := case when v_end is null then p_look else p_end_look end;
        end if;
        select array_agg(x.id order by x.id) filter (
                   where x.reached and (v_end is null or right(replace(x.id::text, '-', ''), length(v_end)) = v_end)),
               bool_or(x.reached), count(*)
          into v_ids, v_any, v_looked
          from (select j.id, p_within is null or (
                       select laneway.is_within(p_within, v.created_by, v.workspace, v.lane)
                         from laneway.jobs_view v where v.seq = j.seq) as reached
                  from (select b.seq, b.id from laneway.jobs b where b.id between v_first and v_last
                         order by b.id limit v_look) j offset 0) x;  -- offset: reached is computed once
        return query select v_n, m.id from unnest(v_ids[:p_limit]) as m (id);
        if (v_looked >= v_look and v_any) or cardinality(v_ids) > p_limit then
            n := v_n;
            id := null;
            return next;
        end if;
        if p_within is not null then
            v_look := v_look - v_looked;
        end if;
    end loop;
end $$;
