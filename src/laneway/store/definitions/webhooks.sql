-- Webhooks: each enabled one is an end hook whose jobs are deliveries.

-- Makes the end hook of a webhook what its row says; none if it is disabled. With its owner's rights.
create or replace function laneway.mirror_webhook() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not new.enabled then
        delete from laneway.end_hooks h where h.webhook = new.name;
        return null;
    end if;
    insert into laneway.end_hooks as h (name, application, webhook, job_types, statuses, workspaces, lanes, tags)
    values (E'\x02' || new.name, '', new.name, nullif(new.job_types, '{}'),
            array(select substr(e, length('job.') + 1) from unnest(new.events) e),
            nullif(new.workspaces, '{}'), nullif(new.lanes, '{}'), nullif(new.tags, '{}'))
    on conflict (name) do update
       set (job_types, statuses, workspaces, lanes, tags)
         = (excluded.job_types, excluded.statuses, excluded.workspaces, excluded.lanes, excluded.tags);
    return null;
end $$;
create or replace trigger mirror_webhook after insert or update on laneway.webhooks
    for each row execute function laneway.mirror_webhook();
