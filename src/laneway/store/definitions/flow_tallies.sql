-- Sums of flows. Submits, ends and retries append tallies, so that no two of them wait for one row. The leader folds tallies
-- into the flow; a submit that meets many of them makes one of them. So a submit reads few of them, however large the flow is.

-- Counts the jobs and edges that a submit adds to a flow; refuses too many. A transaction that adds one by one remembers the
-- sums: it would read its own tallies again each time.
create or replace function laneway.count_in_flow(p_flow bigint, p_jobs integer, p_edges integer) returns void
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    c_most   constant integer := 100000;
    -- More tallies than these become one.
    c_few    constant integer := 64;
    v_known  text[] := string_to_array(current_setting('laneway.flow_sums', true), ' ');
    v_place  text[] := array[pg_current_xact_id()::text, p_flow::text];
    v_jobs   bigint;
    v_edges  bigint;
    v_count  bigint;
begin
    if v_known[1:2] = v_place then
        v_jobs := v_known[3];
        v_edges := v_known[4];
    else
        select f.jobs + coalesce(t.jobs, 0), f.edges + coalesce(t.edges, 0), t.n into v_jobs, v_edges, v_count
          from laneway.flows f
         cross join lateral (select sum(x.jobs) as jobs, sum(x.edges) as edges, count(*) as n
                               from laneway.flow_tallies x where x.flow = f.seq offset 0) t
         where f.seq = p_flow;
        -- A snapshot that is older than a change of them cannot lock them.
        if v_count > c_few and current_setting('transaction_isolation') = 'read committed' then
            perform laneway.merge_tallies(p_flow);
        end if;
    end if;
    v_jobs := v_jobs + p_jobs;
    v_edges := v_edges + p_edges;
    if v_jobs > c_most or v_edges > c_most then
        raise exception using errcode = 'LW001', message = format(
            'flow: at most %s jobs and %s edges; with these there would be %s and %s', c_most, c_most, v_jobs, v_edges);
    end if;
    insert into laneway.flow_tallies (flow, jobs, edges) values (p_flow, p_jobs, p_edges);
    -- A rollback to a savepoint also takes this back.
    perform set_config('laneway.flow_sums', array_to_string(v_place || v_jobs::text || v_edges::text, ' '), true);
end $$;

-- Replaces tallies of a flow by their sum. Waits for no lock: skips those that another transaction replaces or folds.
create or replace function laneway.merge_tallies(p_flow bigint) returns void
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_ids bigint[] := array(
        select t.id from laneway.flow_tallies t where t.flow = p_flow limit 10000 for update skip locked);
begin
    with gone as (
        delete from laneway.flow_tallies t where t.id = any (v_ids) returning t.*
    )
    insert into laneway.flow_tallies (flow, jobs, edges, completed, failed, cancelled, ended_at)
    select p_flow, sum(g.jobs), sum(g.edges), sum(g.completed), sum(g.failed), sum(g.cancelled), max(g.ended_at)
      from gone g having count(*) > 0;
end $$;

-- Adds the tallies of flows to their sums, oldest first, and deletes flows whose last jobs were deleted. Returns how many
-- tallies it removed. With its owner's rights, like note_ends.
create or replace function laneway.fold_tallies(p_limit integer) returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_ids    bigint[] := array(
        select x.id from (select t.id from laneway.flow_tallies t order by t.id limit p_limit for update skip locked) x);
    v_empty  bigint[];
    v_looked bigint[];
begin
    if v_ids = '{}' then return 0; end if;
    with gone as (
        delete from laneway.flow_tallies t where t.id = any (v_ids) returning t.*
    ), sums as materialized (
        select g.flow, sum(g.jobs) as jobs, sum(g.edges) as edges, sum(g.completed) as completed, sum(g.failed) as failed,
               sum(g.cancelled) as cancelled, max(g.ended_at) as ended_at
          from gone g group by g.flow
    ), folded as (
        update laneway.flows f
           set jobs = f.jobs + s.jobs, edges = f.edges + s.edges, completed = f.completed + s.completed,
               failed = f.failed + s.failed, cancelled = f.cancelled + s.cancelled,
               is_open = f.jobs + s.jobs > f.completed + s.completed + f.failed + s.failed + f.cancelled + s.cancelled,
               ended_at = greatest(f.ended_at, s.ended_at)
          from sums s where f.seq = s.flow
        returning f.seq, f.jobs, f.is_open
    )
    select array_agg(d.seq) into v_empty from folded d
     where d.jobs > 0 and not d.is_open and (select true from laneway.links l where l.flow = d.seq limit 1) is null;
    if v_empty is not null then
        -- Not in the statement below, which would call it for each flow.
        v_looked := laneway.remove_empty_flows(v_empty);
        -- A submit to the flow may be under way: then the next call looks again.
        insert into laneway.flow_tallies (flow) select unnest(v_empty) except select unnest(v_looked);
    end if;
    return cardinality(v_ids);
end $$;

-- Deletes those of these flows that have no jobs. Returns those that it could lock, so that no submit to them is under way.
create or replace function laneway.remove_empty_flows(p_seqs bigint[]) returns bigint[]
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_seqs bigint[] := array(
        select f.seq from laneway.flows f where f.seq = any (p_seqs) order by f.seq for update skip locked);
begin
    -- In its own statement: it sees the jobs of those that had locked them before. Their tallies, which fold_tallies locks
    -- before the flow, are left to it.
    delete from laneway.flows f
     where f.seq = any (v_seqs) and (select true from laneway.links l where l.flow = f.seq limit 1) is null;
    return v_seqs;
end $$;

-- Deletes flows that never had a job, because there was none or all were duplicates, after the time for which jobs without a
-- policy of their type are kept: at most p_limit. Returns how many it looked at.
create or replace function laneway.remove_unused_flows(p_limit integer, p_now timestamptz) returns integer
language sql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select coalesce(cardinality(laneway.remove_empty_flows(array(
        select f.seq from laneway.flows f
         where f.jobs = 0 and f.created_at < p_now - interval '7 days'
           and (select true from laneway.links l where l.flow = f.seq limit 1) is null
         order by f.created_at limit p_limit))), 0)
$$;
