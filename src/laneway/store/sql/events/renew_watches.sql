-- Extends watches without shortening one or waiting for locks; returns those that exist.
with kept as (
    update laneway.watches w set until = clock_timestamp() + make_interval(secs => %(keep_s)s::double precision)
     where w.seq = any (array(
        select x.seq from laneway.watches x where x.seq = any (%(seqs)s::bigint[])
           and x.until < clock_timestamp() + make_interval(secs => %(keep_s)s::double precision)
         order by x.seq for no key update skip locked)))
select w.seq from laneway.watches w where w.seq = any (%(seqs)s::bigint[])
