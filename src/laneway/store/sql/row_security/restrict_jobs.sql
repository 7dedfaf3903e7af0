-- Until this transaction ends, a role under row-level security sees only jobs of these workspaces.
select set_config('laneway.workspaces', (%(workspaces)s::text[])::text, true)
