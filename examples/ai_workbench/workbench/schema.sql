-- Documents as they came in, and their chunks with embeddings.
create schema if not exists workbench;
create table if not exists workbench.document (
    id             uuid primary key,
    workspace      text not null,
    knowledge_base text not null,
    content        text not null
);
create table if not exists workbench.chunk (
    id        uuid primary key,
    document  uuid not null references workbench.document,
    position  integer not null,
    content   text not null,
    embedding double precision[] not null,
    attempt   integer not null
);
