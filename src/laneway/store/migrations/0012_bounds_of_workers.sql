-- phase: pre
-- safe-with: 0.1.0
-- What remote workers may declare, and how much an attempt may store.

-- A permission of its own to change what is published of job types, beside workers:claim.
update laneway.roles
   set permissions = permissions[:array_position(permissions, 'workers:claim')] || '{workers:declare}'::text[]
                     || permissions[array_position(permissions, 'workers:claim') + 1:],
       updated_at = clock_timestamp()
 where is_seeded and name in ('platform_admin', 'operator') and not 'workers:declare' = any (permissions);

-- Bytes of the result as JSON text, which the compressed column does not tell; null: kept before.
alter table laneway.steps add column size integer;
