-- A clock that tests move, and a clean slate before each test. For databases that only tests use: it replaces
-- clock_timestamp(), by which Laneway decides what is due. now() and CURRENT_TIMESTAMP keep the real time.
create schema laneway_testing;

create table laneway_testing.clock (
    stopped_at timestamptz,
    ahead      interval not null default '0'
);
insert into laneway_testing.clock default values;

alter function pg_catalog.clock_timestamp() rename to real_clock_timestamp;

create function pg_catalog.clock_timestamp() returns timestamptz language sql volatile as $$
    select coalesce(c.stopped_at, pg_catalog.real_clock_timestamp() + c.ahead) from laneway_testing.clock c
$$;

grant usage on schema laneway_testing to public;
grant select on laneway_testing.clock to public;

-- The statements that empty each table and bring back the rows that a new schema has.
create table laneway_testing.resets (statement text not null);

create function laneway_testing.save_seed() returns void language plpgsql as $$
declare
    v_table   name;
    v_columns text;
    v_is_full boolean;
begin
    for v_table in
        select c.relname from pg_catalog.pg_class c
         where c.relnamespace = 'laneway'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    loop
        insert into laneway_testing.resets values (format('delete from laneway.%I', v_table));
        execute format('select exists (select from laneway.%I)', v_table) into v_is_full;
        continue when not v_is_full;
        execute format('create table laneway_testing.%I as table laneway.%I', 'seed_' || v_table, v_table);
        select string_agg(quote_ident(a.attname), ', ' order by a.attnum) into v_columns
          from pg_catalog.pg_attribute a
         where a.attrelid = format('laneway.%I', v_table)::regclass and a.attnum > 0
           and not a.attisdropped and a.attgenerated = '';
        insert into laneway_testing.resets values (format(
            'insert into laneway.%1$I (%2$s) overriding system value select %2$s from laneway_testing.%3$I',
            v_table, v_columns, 'seed_' || v_table));
    end loop;
end $$;

-- Without triggers and foreign keys: the seed is complete as it is.
create function laneway_testing.reset() returns void language plpgsql
set session_replication_role = replica
set lock_timeout = '10s'
as $$
declare
    v_statement text;
begin
    for v_statement in select r.statement from laneway_testing.resets r loop
        execute v_statement;
    end loop;
    update laneway_testing.clock set stopped_at = pg_catalog.real_clock_timestamp(), ahead = '0';
end $$;
