-- Deletes a webhook with its secrets; its deliveries stay, and waiting ones are cancelled when they
-- run, also if a new webhook has its name by then. Returns whether it did.
delete from laneway.webhooks where name = %(name)s::text returning true
