-- Several applications may publish the same job type. None of them loosens the policy of another.

-- The strictness of the approval in a published record.
create or replace function laneway.strictness(p_record jsonb) returns integer language sql immutable as $$
    select case p_record ->> 'approval' when 'always' then 2 when 'below' then 1 else 0 end
$$;

-- Whether arguments, retries, limits and analysis of an application still count, by when it was last seen: for 45 days,
-- because it may run once a month. All code without a file has the name __main__ and counts for a day. Its approval
-- policy counts until the publisher is deleted: only an operator may loosen a policy.
create or replace function laneway.is_current_publisher(p_application text, p_seen timestamptz) returns boolean
language sql stable as $$
    select p_seen >= clock_timestamp() - case p_application when '__main__' then interval '1 day'
                                              else interval '45 days' end
$$;

-- Stores the publications of an application and returns the records unchanged: keep_strictest adds the requirements of
-- others. A record without an application is not stored. Serializes applications.
create or replace function laneway.save_publications(p_types jsonb) returns jsonb
language plpgsql volatile as $$
begin
    perform pg_advisory_xact_lock(5577006791947779411);
    insert into laneway.type_publishers as p (job_type, application, record, seen_at)
    select t ->> 'name', t ->> 'application', t - 'application', clock_timestamp() from jsonb_array_elements(p_types) t
     where t ->> 'application' is not null order by t ->> 'name'
    on conflict (job_type, application) do update
       set record = excluded.record, seen_at = excluded.seen_at,
           published_at = case when p.record = excluded.record then p.published_at else excluded.published_at end
     where p.record is distinct from excluded.record or p.seen_at < clock_timestamp() - interval '10 minutes';
    return p_types;
end $$;

-- Keeps the strictest requirements of all applications in a published row: approval and two persons of all; analysis,
-- fewer retries and more limits of those that still count. The arguments are those of the first that counts. A trigger,
-- with its owner's rights, because workers of older versions write the table themselves.
create or replace function laneway.keep_strictest() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    r record;
begin
    select count(*) as applications, bool_or((p.record ->> 'two_person')::boolean) as two_person,
           bool_or((p.record ->> 'has_analysis')::boolean and laneway.strictness(p.record) > 0)
               filter (where b.is_current) as has_analysis,
           min((p.record ->> 'max_retries')::integer) filter (where b.is_current) as max_retries,
           count(*) filter (where b.is_current) as seen,
           (array_agg(p.record -> 'arguments' order by p.first_at, p.application)
               filter (where b.is_current))[1] as arguments,
           (array_agg(p.record order by laneway.strictness(p.record) desc,
                      p.record ->> 'approval_unit' is distinct from new.approval_unit,
                      (p.record ->> 'approval_below')::numeric))[1] as strictest
      into r from laneway.type_publishers p
     cross join lateral (select laneway.is_current_publisher(p.application, p.seen_at) as is_current) b
     where p.job_type = new.name;
    if r.applications = 0 then return new; end if;
    new.two_person := new.two_person or coalesce(r.two_person, false);
    new.has_analysis := new.has_analysis or coalesce(r.has_analysis, false);
    new.max_retries := least(new.max_retries, r.max_retries);
    if r.seen > 0 then
        new.arguments := nullif(r.arguments, 'null');
    end if;
    if exists (select from laneway.type_publishers p, jsonb_array_elements_text(p.record -> 'limits') l
                where p.job_type = new.name and laneway.is_current_publisher(p.application, p.seen_at)
                  and l <> all (new.limits)) then
        new.limits := array(select unnest(new.limits)
                            union
                            select l from laneway.type_publishers p, jsonb_array_elements_text(p.record -> 'limits') l
                             where p.job_type = new.name and laneway.is_current_publisher(p.application, p.seen_at)
                             order by 1);
    end if;
    if laneway.strictness(r.strictest) > laneway.strictness(jsonb_build_object('approval', new.approval))
       or (new.approval = 'below' and r.strictest ->> 'approval' = 'below'
           and r.strictest ->> 'approval_unit' is not distinct from new.approval_unit
           and (r.strictest ->> 'approval_below')::numeric < new.approval_below) then
        new.approval := r.strictest ->> 'approval';
        new.approval_below := (r.strictest ->> 'approval_below')::numeric;
        new.approval_unit := r.strictest ->> 'approval_unit';
        new.approval_expires_s := (r.strictest ->> 'approval_expires_s')::double precision;
    end if;
    return new;
end $$;
create or replace trigger keep_strictest before insert or update on laneway.job_types
    for each row execute function laneway.keep_strictest();

-- Job types that applications publish with different policies: all, or those named.
create or replace function laneway.publication_conflicts(p_types text[] default null)
returns table (job_type text, applications text[], fields text[]) language sql stable as $$
    select p.job_type, array_agg(distinct p.application), array_agg(distinct f.name)
      from laneway.type_publishers p
     cross join (values ('approval', true), ('approval_below', true), ('approval_unit', true), ('two_person', true),
                        ('has_analysis', false), ('max_retries', false), ('limits', false), ('arguments', false)
                ) f (name, is_kept)
     where (p_types is null or p.job_type = any (p_types))
       and (f.is_kept or laneway.is_current_publisher(p.application, p.seen_at))
       and exists (select from laneway.type_publishers o
                    where o.job_type = p.job_type and (f.is_kept or laneway.is_current_publisher(o.application, o.seen_at))
                      and o.record -> f.name is distinct from p.record -> f.name)
     group by p.job_type order by p.job_type
$$;

-- Deletes the publication of an application that is gone or no longer has the handler: the others decide the policy
-- when they publish next, at the start of their workers. Returns whether there was such a row.
create or replace function laneway.forget_publisher(job_type text, application text) returns boolean
language plpgsql volatile as $$
begin
    delete from laneway.end_hooks h
     where h.name = forget_publisher.job_type and h.application = forget_publisher.application;
    delete from laneway.type_publishers p
     where p.job_type = forget_publisher.job_type and p.application = forget_publisher.application;
    return found;
end $$;
