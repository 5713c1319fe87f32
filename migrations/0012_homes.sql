-- A repository may have a home: a destination that keeps the contents of its documents after they were delivered there. The relay then removes
-- its own copy, and reads a content back when it is asked for.

alter table repositories
add column home_destination_id text collate "C" references destinations (id),
add column home_after_days integer not null default 30;
comment on column repositories.home_destination_id is
  'The destination that keeps the contents of delivered documents in place of the relay. Null if the relay keeps them.';
comment on column repositories.home_after_days is
  'How many days after its delivery there a content is removed here. No meaning without a home.';

create index repositories_by_home on repositories (home_destination_id)
where home_destination_id is not null and deleted_at is null;
comment on index repositories_by_home is
  'Serves changes of a destination, and the job that removes contents that are at their home.';

create table home_contents (
  content_id text collate "C" primary key references contents (id) on delete cascade,
  document_id text collate "C" not null,
  destination_id text collate "C" not null,
  path text not null,
  digests bytea not null,
  altered_since timestamptz,
  last_error text,
  checked_at timestamptz not null default now()
);
comment on table home_contents is
  'Contents whose bytes are at a destination only. Without foreign keys to what a deleted workspace takes with it: its contents stay until the '
  'orphan sweep has removed them.';
comment on column home_contents.path is
  'The path of its delivery there, as deliveries.path has it; at a content server, where the path has no effect, docId/compId.';
comment on column home_contents.digests is
  'The SHA-256 of each block of 4 MiB of the content, one after the other. What is read at the destination is compared with them.';
comment on column home_contents.altered_since is
  'When the destination was first found not to have the bytes any more, or other ones. Null if it has them as far as is known.';
comment on column home_contents.last_error is
  'What was found then, in a sentence.';
comment on column home_contents.checked_at is
  'When an altered content was last read.';

create function folded_place(place text) returns text language sql immutable parallel safe as $$
-- The locale C of a database has only the letters of ASCII in two cases.
select lower(normalize(place, NFC) collate "und-x-icu") collate "C"
$$;
comment on function folded_place is
  'Returns the same for all paths that a target may take for one: some do not tell upper from lower case, or composed characters from others.';

create index home_contents_by_path on home_contents (destination_id, folded_place(path), content_id);
comment on index home_contents_by_path is
  'Serves changes of a destination, and deliveries: what lies at their path is brought back before they replace it.';

create index home_contents_altered on home_contents (destination_id, altered_since)
where altered_since is not null;
comment on index home_contents_altered is
  'Serves the check for incidents.';

create index home_contents_to_check on home_contents (checked_at)
where altered_since is not null;
comment on index home_contents_to_check is
  'Serves the job that reads altered contents again.';

create table home_progress (
  repository_id text collate "C" primary key references repositories (id) on delete cascade,
  destination_id text collate "C" not null,
  judged_to timestamptz not null,
  judged_id text collate "C" not null
);
comment on table home_progress is
  'How far the documents of a repository, in the order of their receipt, were looked at for its home. Those that could not go yet are in home_waiting.';

create table home_waiting (
  document_id text collate "C" primary key,
  repository_id text collate "C" not null references repositories (id) on delete cascade,
  due_at timestamptz not null
);
comment on table home_waiting is
  'Documents whose content could not leave when it was looked at: delivered late, not settled, held, or not to be read at the home. Looked at again '
  'when due. A row stays without its document until then.';

create index home_waiting_due on home_waiting (repository_id, due_at, document_id);
comment on index home_waiting_due is
  'Serves the job that removes contents that are at their home.';
