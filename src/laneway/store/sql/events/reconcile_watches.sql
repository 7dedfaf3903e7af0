-- Logs changes that older transactions made without an event; returns the settled watches.
select s from laneway.reconcile(%(seqs)s::bigint[]) s
