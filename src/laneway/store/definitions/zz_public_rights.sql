-- PostgreSQL lets every role call a new function, and some of these run with their owner's rights. Last of the
-- definitions, so that it covers all: `laneway db grants` gives each role its functions.
revoke execute on all functions in schema laneway from public;
