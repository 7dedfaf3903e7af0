-- Deletes a webhook with its secrets; its deliveries stay, and waiting ones are cancelled when they run. Returns whether it did.
delete from laneway.webhooks where name = %(name)s::text returning true
