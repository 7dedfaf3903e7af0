-- phase: pre
-- safe-with: 0.1.0
-- The permission to send events. Custom roles take it as any other; of the seeded ones only platform_admin has all.
update laneway.roles
   set permissions = permissions[:array_position(permissions, 'metrics:read')] || '{events:send}'::text[]
                     || permissions[array_position(permissions, 'metrics:read') + 1:]
 where is_seeded and name = 'platform_admin' and not 'events:send' = any (permissions);
