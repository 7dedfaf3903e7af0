-- PostgreSQL lets everybody call a new function, and some of these run with the rights of their owner. Last of the
-- definitions, so that it covers them all: each is for the roles that `laneway db grants` gives it to.
revoke execute on all functions in schema laneway from public;
