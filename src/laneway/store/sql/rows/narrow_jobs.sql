-- Until this transaction ends, a role that row-level security binds sees jobs of these workspaces only.
select set_config('laneway.workspaces', (%(workspaces)s::text[])::text, true)
