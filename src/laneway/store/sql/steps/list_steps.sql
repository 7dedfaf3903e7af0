-- The newest finished steps of a job, in the order in which they finished, without their results.
select s.name, s.attempt, s.took_s, s.at
  from (select x.name, x.attempt, x.took_s, x.at from laneway.steps x
         where x.seq = (select j.seq from laneway.jobs j where j.id = %(id)s::uuid)
         order by x.at desc, x.name desc limit %(limit)s::integer) s
 order by s.at, s.name
