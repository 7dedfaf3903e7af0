-- Deletes a webhook with its secrets; its waiting deliveries are cancelled when they run. Returns whether it did.
delete from laneway.webhooks where name = %(name)s::text returning true
