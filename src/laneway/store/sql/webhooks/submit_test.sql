-- Submits a delivery of a sample job, without retries, even to a disabled webhook. Returns its id; no row: unknown webhook.
select s.job_id
  from laneway.webhooks w
 cross join lateral laneway.submit(
    job_type => %(job_type)s::text, tags => array['webhook:' || w.name, 'webhook_id:' || w.id], max_retries => 0,
    created_by => %(submitter)s::text,
    payload => jsonb_build_object('webhook', w.name, 'job', %(job)s::jsonb, 'is_test', true)) s
 where w.name = %(name)s::text
