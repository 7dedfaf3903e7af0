-- The graph: sources are chunks of documents, and concepts are mentioned in them.
create schema if not exists kg;
create table if not exists kg.source (
    document  text,
    chunk     integer,
    content   text not null,
    embedding double precision[],
    primary key (document, chunk)
);
create table if not exists kg.concept (
    name      text primary key,
    embedding double precision[],
    support   integer not null default 0,
    place     double precision[]
);
create table if not exists kg.mention (
    concept  text references kg.concept on update cascade on delete cascade,
    document text,
    chunk    integer,
    primary key (concept, document, chunk),
    foreign key (document, chunk) references kg.source on delete cascade
);
create table if not exists kg.proposal (
    id          bigint generated always as identity primary key,
    drops       text not null unique,
    executed_at timestamptz
);
