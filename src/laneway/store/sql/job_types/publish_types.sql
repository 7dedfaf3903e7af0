-- Publishes a worker's job types; loosens nothing that another application requires.
-- The newest publication of an application wins; unchanged rows are not rewritten.
-- With `first`, published types stay unchanged, also what an operator has set.
-- Unless `loosens`, a required approval stays required, equally or more strictly.
with given as (
    select * from jsonb_to_recordset(laneway.save_publications(%(types)s::jsonb)) as p (
        name text, arguments jsonb, lane text, priority integer, max_retries integer, timeout_s double precision,
        isolation text, stale text, retry_base_s double precision, retry_cap_s double precision,
        retry_factor double precision, retry_jitter double precision, limits text[], has_analysis boolean,
        approval text, approval_below numeric, approval_unit text, two_person boolean,
        approval_expires_s double precision, max_age_s double precision, keep_completed_s double precision,
        keep_cancelled_s double precision, keep_failed_s double precision, keep_count integer,
        unique_for_s double precision, unique_by text[])
)
insert into laneway.job_types as t (
    name, arguments, lane, priority, max_retries, timeout_s, isolation, stale, retry_base_s, retry_cap_s, retry_factor,
    retry_jitter, limits, has_analysis, approval, approval_below, approval_unit, two_person, approval_expires_s,
    max_age_s, keep_completed_s, keep_cancelled_s, keep_failed_s, keep_count, unique_for_s, unique_by, published_at)
select p.name, p.arguments, p.lane, coalesce(case when %(first)s::boolean then o.priority end, p.priority, o.priority, 0), p.max_retries, p.timeout_s, p.isolation,
       p.stale, p.retry_base_s, p.retry_cap_s, p.retry_factor, p.retry_jitter, p.limits, p.has_analysis, p.approval,
       p.approval_below, p.approval_unit, p.two_person, p.approval_expires_s, p.max_age_s, p.keep_completed_s,
       p.keep_cancelled_s, p.keep_failed_s, p.keep_count, p.unique_for_s, p.unique_by, clock_timestamp()
  from given p left join laneway.job_types o on o.name = p.name
 order by p.name
on conflict (name) do update
   set (arguments, lane, priority, max_retries, timeout_s, isolation, stale, retry_base_s, retry_cap_s, retry_factor,
        retry_jitter, limits, has_analysis, approval, approval_below, approval_unit, two_person, approval_expires_s,
        max_age_s, keep_completed_s, keep_cancelled_s, keep_failed_s, keep_count, unique_for_s, unique_by, published_at)
     = (excluded.arguments, excluded.lane, excluded.priority, excluded.max_retries, excluded.timeout_s,
        excluded.isolation, excluded.stale, excluded.retry_base_s, excluded.retry_cap_s, excluded.retry_factor,
        excluded.retry_jitter, excluded.limits,
        excluded.has_analysis or (not %(loosens)s::boolean and t.approval <> 'never' and t.has_analysis),
        case when %(loosens)s or t.approval = 'never' or excluded.approval = 'always' then excluded.approval
             else t.approval end,
        case when %(loosens)s or t.approval = 'never' or excluded.approval = 'always' then excluded.approval_below
             else t.approval_below end,
        case when %(loosens)s or t.approval = 'never' or excluded.approval = 'always' then excluded.approval_unit
             else t.approval_unit end,
        excluded.two_person or (not %(loosens)s and t.two_person),
        case when %(loosens)s or t.approval = 'never' then excluded.approval_expires_s else t.approval_expires_s end,
        excluded.max_age_s, excluded.keep_completed_s, excluded.keep_cancelled_s, excluded.keep_failed_s, excluded.keep_count,
        excluded.unique_for_s, excluded.unique_by, excluded.published_at)
 where t.published_at is null
    or (not %(first)s and to_jsonb(t) - 'published_at' is distinct from to_jsonb(excluded) - 'published_at')
