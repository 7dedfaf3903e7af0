-- Publishes the end hooks of applications, and deletes those that they no longer have.
-- Returns hooks that another application published in another way before.
select name, application from laneway.publish_end_hooks(%(hooks)s::jsonb, %(applications)s::text[])
