-- Creates a webhook unless the name is taken, and lets workers and servers deliver. Returns whether it did.
with opened as (
    update laneway.control set has_webhooks = true where not has_webhooks
)
insert into laneway.webhooks (name, url, events, job_types, workspaces, lanes, tags, enabled, timeout_s, max_retries, secret,
                              created_by, updated_by)
values (%(name)s::text, %(url)s::text, %(events)s::text[], %(job_types)s::text[], %(workspaces)s::text[], %(lanes)s::text[],
        %(tags)s::text[], %(enabled)s::boolean, %(timeout_s)s::integer, %(max_retries)s::integer, %(secret)s::text,
        %(by)s::text, %(by)s::text)
on conflict (name) do nothing
returning true
