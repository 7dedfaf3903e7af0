-- PostgreSQL lets every role call a new function, and some of these run with the rights of their owner. Last of the
-- definitions, so that it covers them all: `laneway db grants` gives each role its functions.
revoke execute on all functions in schema laneway from public;
