-- Refuses invalid names of job types in rows written by SQL. Existing values stay: a lane with such a type can be
-- tuned, and such a type can be published again.
create or replace function laneway.check_job_types() returns trigger language plpgsql as $$
declare
    v_names text[];
    v_known text[] := '{}';
    v_rule  text;
begin
    if tg_table_name = 'job_types' and new.name collate "C" ~ '^[!-~]{1,128}$' then return new; end if;
    case tg_table_name
        when 'worker_lanes' then
            v_names := new.job_types;
            if tg_op = 'UPDATE' then v_known := old.job_types; end if;
        when 'schedules' then
            v_names := array[new.job_type];
            if tg_op = 'UPDATE' then v_known := array[old.job_type]; end if;
        else
            v_names := array[new.name];
            v_known := array(select t.name from laneway.job_types t where t.name = new.name);
    end case;
    select case when n is null or octet_length(n) not between 1 and 128 then '1 to 128 bytes'
                when n like ' %' or n like '% ' then 'must not begin or end with a space'
                else 'must be printable text without control characters' end into v_rule
      from unnest(v_names) n
     where n is null or (n collate "C" !~ '^[!-~]{1,128}$' and n <> all (v_known) and (
           octet_length(n) not between 1 and 128 or n like ' %' or n like '% '
           or n collate "C" ~ ('[\u0001-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f'
               '\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff\ufeff\ufff9-\ufffb\ufffe\uffff\U000110bd\U000110cd'
               '\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000f0000-\U0010ffff]')))
     limit 1;
    if v_rule is not null then
        raise exception using errcode = 'LW001', message = 'job_type: ' || v_rule;
    end if;
    return new;
end $$;
create or replace trigger check_job_types before insert or update of job_types on laneway.worker_lanes
    for each row execute function laneway.check_job_types();
create or replace trigger check_job_types before insert or update of job_type on laneway.schedules
    for each row execute function laneway.check_job_types();
create or replace trigger check_job_types before insert on laneway.job_types
    for each row execute function laneway.check_job_types();
