-- Returns whether a schema of the name of a benchmark exists, and whether a benchmark made it.
select to_regnamespace('laneway_bench') is not null, to_regclass('laneway_bench.run') is not null
