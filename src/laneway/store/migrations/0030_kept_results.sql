-- phase: pre
-- safe-with: 0.1.0
-- Results of jobs are kept until the jobs that come after them have ended; waiting jobs and open flows can be counted.
-- The index of waiting jobs takes about a second per million of them, while ends that release one wait.

-- Parents that are not in the flow of their child. Jobs of one flow are kept as long as the flow.
create table laneway.kept_results (
    parent  bigint not null,
    child   bigint not null,
    primary key (parent, child)
);
insert into laneway.kept_results (parent, child)
select distinct p.seq, l.seq from laneway.links l cross join lateral unnest(l.parents) as p (seq)
 where l.parents is not null and not exists (select from laneway.outcome o where o.seq = l.seq)
   and (l.flow is null or not exists (select from laneway.jobs j where j.seq = p.seq and j.flow = l.flow));

-- With another collation than the column, so that only counts use it: a plan made for few jobs would prefer it to the number.
create index waiting_reason on laneway.waiting (reason collate "POSIX", since);

-- Whether a job of it has not ended, as of the last folded tallies. Null: none is folded since this migration.
alter table laneway.flows add column is_open boolean;
create index flows_open on laneway.flows (seq) where is_open;
