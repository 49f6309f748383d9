-- Leases in PostgreSQL: what package pglease reads and writes. Run it once, in the schema
-- of your choice, as the owner of that schema; running it again changes nothing.

-- One row a lease. record is what a person reads, and the truth:
--   {"state":"leased","id":"...","owner":"worker-1","duration":"15s","until":"2012-01-26T23:30:33Z","epoch":7}
create table if not exists lease (
    name    text collate "C" primary key,
    record  json not null check (
        coalesce(record->>'state' in ('available', 'leased', 'expired', 'breaking', 'broken'), false)
        and coalesce((record->>'epoch')::bigint >= 0, false)
        and coalesce((record->>'until')::timestamptz, 'epoch') is not null),
    floor   bigint not null default 0,     -- the epoch counts as at least this
    version bigint not null default 0,     -- another one after every change, whoever made it
    changed timestamptz not null default clock_timestamp()
) with (fillfactor = 70);                  -- room for a renewal to stay on its page

-- What must outlive deleted rows, in one row: above every epoch and version of theirs.
create table if not exists lease_floor (
    one     boolean primary key default true check (one),
    epoch   bigint not null default 0,
    version bigint not null default 0
);
insert into lease_floor default values on conflict do nothing;

-- Whoever changes a row, psql included, makes a new version of it and wakes those who watch.
-- Time does not run backward for a row, though the clock of the server be set.
create or replace function lease_change() returns trigger language plpgsql as $$
begin
    if new.name <> old.name then
        raise exception 'lease: a lease cannot be renamed' using hint = 'delete the row';
    end if;
    new.version := old.version + 1;
    new.floor := greatest(old.floor, (old.record->>'epoch')::bigint);
    if new.changed <= old.changed then     -- it says no time of its own
        new.changed := greatest(clock_timestamp(), old.changed);
    end if;
    perform pg_notify('lease', new.name);
    return new;
end $$;

create or replace function lease_insert() returns trigger language plpgsql
set search_path from current as $$
begin
    select f.epoch, f.version + 1 into strict new.floor, new.version from lease_floor f for share;
    new.changed := clock_timestamp();
    perform pg_notify('lease', new.name);
    return new;
end $$;

create or replace function lease_delete() returns trigger language plpgsql
set search_path from current as $$
begin
    update lease_floor f set
        epoch = greatest(f.epoch, old.floor, (old.record->>'epoch')::bigint),
        version = greatest(f.version, old.version) + 1;
    perform pg_notify('lease', old.name);
    return old;
end $$;

create or replace function lease_truncate() returns trigger language plpgsql as $$
begin
    raise exception 'lease: truncate would forget the order of tokens' using hint = 'delete from lease';
end $$;

create or replace trigger lease_change before update on lease for each row execute function lease_change();
create or replace trigger lease_insert before insert on lease for each row execute function lease_insert();
create or replace trigger lease_delete before delete on lease for each row execute function lease_delete();
create or replace trigger lease_truncate before truncate on lease for each statement execute function lease_truncate();

-- The newest fencing token that each guarded resource was shown: see Admit. Keep it in the
-- database of the data that it guards.
create table if not exists lease_mark (
    name  text collate "C" primary key,
    token text collate "C" not null default ''
);

-- What a user of leases needs, and no more:
--   grant select, insert, update on lease, lease_mark to worker;
--   grant select, update on lease_floor to worker;
