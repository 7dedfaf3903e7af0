-- Makes frozen lanes again what they were and forgets; answers what each is now.
select lane, was_enabled, enabled from laneway.thaw(%(lanes)s::text[], %(by)s::text)
