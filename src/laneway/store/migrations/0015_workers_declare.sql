-- phase: pre
-- safe-with: 0.1.0
-- A permission of its own to change what is published of job types.

-- Beside workers:claim, which the roles that may do everything with workers have.
update laneway.roles
   set permissions = array_append(permissions, 'workers:declare'), updated_at = clock_timestamp()
 where is_seeded and name in ('platform_admin', 'operator') and not 'workers:declare' = any (permissions);
