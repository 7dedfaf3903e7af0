-- Several applications may publish the same job type. None of them loosens what another asks for.

-- How strict the approval of a published record is.
create or replace function laneway.strictness(p_record jsonb) returns integer language sql immutable as $$
    select case p_record ->> 'approval' when 'always' then 2 when 'below' then 1 else 0 end
$$;

-- Remembers what an application publishes, and answers the records with what others ask for more strictly:
-- approval, two persons, analysis, fewer retries, more limits; the arguments are those of the first application.
-- A record without an application is not remembered. Applications come one after the other.
create or replace function laneway.merge_publications(p_types jsonb) returns jsonb
language plpgsql volatile as $$
declare
    r record;
    v_strict jsonb;
    -- An array, because each value that is added to a jsonb copies it whole.
    v_merged jsonb[] := '{}';
begin
    perform pg_advisory_xact_lock(5577006791947779411);
    insert into laneway.type_publishers as p (job_type, application, record)
    select t ->> 'name', t ->> 'application', t - 'application' from jsonb_array_elements(p_types) t
     where t ->> 'application' is not null order by t ->> 'name'
    on conflict (job_type, application) do update set record = excluded.record, published_at = excluded.published_at
     where p.record is distinct from excluded.record;
    for r in
        select t as own, o.*
          from jsonb_array_elements(p_types) t
         cross join lateral (
            select count(*) as others, bool_or((p.record ->> 'two_person')::boolean) as two_person,
                   bool_or((p.record ->> 'has_analysis')::boolean and laneway.strictness(p.record) > 0) as has_analysis,
                   min((p.record ->> 'max_retries')::integer) as max_retries,
                   (array_agg(p.record order by laneway.strictness(p.record) desc,
                              (p.record ->> 'approval_below')::numeric))[1] as strictest
              from laneway.type_publishers p
             where p.job_type = t ->> 'name' and p.application is distinct from t ->> 'application') o
    loop
        if r.others > 0 then
            v_strict := r.own || jsonb_build_object(
                'two_person', (r.own ->> 'two_person')::boolean or r.two_person,
                'has_analysis', (r.own ->> 'has_analysis')::boolean or r.has_analysis,
                'max_retries', least((r.own ->> 'max_retries')::integer, r.max_retries),
                'limits', (select coalesce(jsonb_agg(distinct l), '[]')
                             from (select jsonb_array_elements(r.own -> 'limits') as l
                                   union all
                                   select jsonb_array_elements(p.record -> 'limits') from laneway.type_publishers p
                                    where p.job_type = r.own ->> 'name') x),
                'arguments', (select p.record -> 'arguments' from laneway.type_publishers p
                               where p.job_type = r.own ->> 'name' order by p.first_at, p.application limit 1));
            if laneway.strictness(r.strictest) > laneway.strictness(r.own)
               or (r.own ->> 'approval' = 'below' and r.strictest ->> 'approval' = 'below'
                   and r.strictest ->> 'approval_unit' is not distinct from r.own ->> 'approval_unit'
                   and (r.strictest ->> 'approval_below')::numeric < (r.own ->> 'approval_below')::numeric) then
                v_strict := v_strict || jsonb_build_object(
                    'approval', r.strictest -> 'approval', 'approval_below', r.strictest -> 'approval_below',
                    'approval_unit', r.strictest -> 'approval_unit',
                    'approval_expires_s', r.strictest -> 'approval_expires_s');
            end if;
        end if;
        v_merged := array_append(v_merged, case when r.others > 0 then v_strict else r.own end);
    end loop;
    return to_jsonb(v_merged);
end $$;

-- Job types that applications publish with different policies: all, or those named.
create or replace function laneway.publication_conflicts(p_types text[] default null)
returns table (job_type text, applications text[], fields text[]) language sql stable as $$
    select p.job_type, array_agg(distinct p.application), array_agg(distinct f.name)
      from laneway.type_publishers p
     cross join (values ('approval'), ('approval_below'), ('approval_unit'), ('two_person'), ('has_analysis'),
                        ('max_retries'), ('limits'), ('arguments')) f (name)
     where (p_types is null or p.job_type = any (p_types))
       and exists (select from laneway.type_publishers o
                    where o.job_type = p.job_type and o.record -> f.name is distinct from p.record -> f.name)
     group by p.job_type order by p.job_type
$$;

-- What an application that is gone, or no longer has the handler, published counts no more: the others say what
-- is in force when they publish next, at the start of their workers. Answers whether there was such a row.
create or replace function laneway.forget_publisher(job_type text, application text) returns boolean
language plpgsql volatile as $$
begin
    delete from laneway.type_publishers p
     where p.job_type = forget_publisher.job_type and p.application = forget_publisher.application;
    return found;
end $$;
