-- Finds fields of job types that differ from a worker's declaration. Arguments, lane and priority may be undeclared.
select d.name, d.fields
  from (select g.type ->> 'name' as name, array(
            select f.key from jsonb_each(g.type) f
             where case f.key when 'lane' then f.value ->> 0 <> laneway.lane_of(t.name)
                              when 'priority' then f.value <> 'null' and f.value <> to_jsonb(t.priority)
                              when 'limits' then not (t.limits @> array(select jsonb_array_elements_text(f.value))
                                                      and t.limits <@ array(select jsonb_array_elements_text(f.value)))
                              when 'approval_below' then (f.value ->> 0)::numeric is distinct from t.approval_below
                              when 'arguments' then f.value <> 'null' and f.value is distinct from t.arguments
                              when 'name' then false when 'application' then false when 'isolation' then false
                              else nullif(f.value, 'null') is distinct from nullif(to_jsonb(t) -> f.key, 'null') end
             order by f.key) as fields, g.n
          from jsonb_array_elements(%(types)s::jsonb) with ordinality as g (type, n)
          join laneway.job_types t on t.name = g.type ->> 'name') d
 where d.fields <> '{}' order by d.n
