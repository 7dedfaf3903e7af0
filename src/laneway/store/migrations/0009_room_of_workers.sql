-- phase: pre
-- safe-with: 0.1.0
-- Workers publish their room, so that explain can name who is full.

-- kinds: places taken and all there are, by isolation. full: by isolation and lane, for how many seconds there had been
-- no room when the worker was last seen. Null: a worker of before, or a server.
alter table laneway.workers add column room jsonb;
