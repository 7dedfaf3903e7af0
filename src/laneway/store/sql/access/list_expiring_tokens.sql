-- Lists tokens in use that expire soon, the first to expire first: at most %(limit)s.
select p.name, t.name, t.hint, t.expires_at,
       extract(epoch from t.expires_at - clock_timestamp())::double precision,
       extract(epoch from t.expires_at - t.created_at)::double precision
  from laneway.tokens t join laneway.principals p on p.id = t.principal_id
 where t.revoked_at is null and p.disabled_at is null and t.expires_at > clock_timestamp()
   and t.expires_at - clock_timestamp() <= least(make_interval(secs => %(soon_s)s::double precision),
                                                 (t.expires_at - t.created_at) * %(share)s::double precision)
   and t.last_used_at > clock_timestamp() - make_interval(secs => %(soon_s)s::double precision)
 order by t.expires_at, t.id limit %(limit)s::bigint
