-- Counts new or retried jobs against what a principal's grants allow, in the transaction that submits them; null bounds
-- nothing. Raises LW004 for too much that waits, LW001 for one more job type that nobody has published. Transactions that
-- run at once do not see each other's jobs: together they may exceed a bound by what each of them submits. With the rights
-- of its owner: a server with the grants of the version before has none on these tables.
create or replace function laneway.charge(
    p_principal uuid, p_ids uuid[], p_bytes bigint[], p_max_queued bigint, p_max_bytes bigint, p_max_types bigint)
returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_jobs  bigint;
    v_bytes bigint;
    v_new   text;
begin
    if p_max_types is not null then
        with used as (
            insert into laneway.unpublished_types as u (principal_id, job_type)
            select distinct p_principal, j.job_type from laneway.jobs j
             where j.id = any (p_ids) and not exists (select from laneway.job_types t where t.name = j.job_type)
            on conflict (principal_id, job_type) do update set used_at = v_now where u.used_at < v_now - interval '1 day'
            returning job_type)
        select min(job_type) into v_new from used;
        if v_new is not null then
            select count(*) into v_jobs from (
                select from laneway.unpublished_types u where u.principal_id = p_principal limit p_max_types + 1) x;
            if v_jobs > p_max_types then
                delete from laneway.unpublished_types u
                 where u.principal_id = p_principal
                   and (u.used_at < v_now - interval '30 days'
                        or exists (select from laneway.job_types t where t.name = u.job_type));
                get diagnostics v_bytes = row_count;
                if v_jobs - v_bytes > p_max_types then
                    raise exception using errcode = 'LW001', message = format(
                        'job_type: no worker has published %s, and your grants allow %s such job types (max_types)',
                        to_json(v_new), p_max_types);
                end if;
            end if;
        end if;
    end if;
    if p_max_queued is null and p_max_bytes is null then return; end if;
    with queued as (
        insert into laneway.queued_by (principal_id, seq, bytes)
        select p_principal, j.seq, coalesce(g.bytes, octet_length(j.payload::text))
          from unnest(p_ids, p_bytes) as g (id, bytes) join laneway.jobs j on j.id = g.id
        on conflict (principal_id, seq) do nothing
        returning bytes)
    select count(*), coalesce(sum(bytes), 0) into v_jobs, v_bytes from queued;
    insert into laneway.queue_usage as u (principal_id, slot, jobs, bytes)
    values (p_principal, 1 + pg_backend_pid() % 8, v_jobs, v_bytes)
    on conflict (principal_id, slot) do update set jobs = u.jobs + excluded.jobs, bytes = u.bytes + excluded.bytes;
    select sum(u.jobs), sum(u.bytes) into v_jobs, v_bytes from laneway.queue_usage u where u.principal_id = p_principal;
    if v_jobs > p_max_queued then
        raise exception using errcode = 'LW004', message = format(
            'your grants allow %s jobs that wait at once (max_queued), with these there would be %s', p_max_queued, v_jobs);
    elsif v_bytes > p_max_bytes then
        raise exception using errcode = 'LW004', message = format(
            'your grants allow %s bytes of payloads that wait at once (max_queued_bytes), with these there would be %s',
            p_max_bytes, v_bytes);
    end if;
end $$;

-- Stops counting jobs of a principal that have started or ended since. Answers how many; once a second at most, and the
-- more it has to look at, the more seldom, because somebody at his bound comes often.
create or replace function laneway.sweep_queued(p_principal uuid) returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_jobs  bigint;
    v_bytes bigint;
begin
    insert into laneway.queue_usage as u (principal_id, slot, swept_at) values (p_principal, 0, v_now)
    on conflict (principal_id, slot) do update set swept_at = v_now
     where u.swept_at < v_now - interval '1 s' - (
           select coalesce(sum(x.jobs), 0) from laneway.queue_usage x where x.principal_id = p_principal)
           * interval '50 microseconds';
    if not found then return 0; end if;
    with gone as (
        delete from laneway.queued_by q
         where q.principal_id = p_principal
           and (exists (select from laneway.outcome o where o.seq = q.seq)
                or exists (select from laneway.lease l where l.seq = q.seq)
                or not exists (select from laneway.jobs j where j.seq = q.seq))
        returning q.bytes)
    select count(*), coalesce(sum(bytes), 0) into v_jobs, v_bytes from gone;
    update laneway.queue_usage u set jobs = u.jobs - v_jobs, bytes = u.bytes - v_bytes
     where u.principal_id = p_principal and u.slot = 0;
    return v_jobs;
end $$;
