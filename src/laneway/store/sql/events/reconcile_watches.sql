-- Logs what older transactions changed without an event; answers what needs no other look.
select s from laneway.reconcile(%(seqs)s::bigint[]) s
