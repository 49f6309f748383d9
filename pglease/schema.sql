-- This file makes the tables and triggers of package pglease, which keeps leases in PostgreSQL. Run
-- it once, in the schema of your choice, as the owner of that schema. Run it again to bring older
-- tables up to date. It keeps the leases and their tokens, and over tables that are up to date it
-- changes nothing. With psql, set ON_ERROR_STOP, so that nothing is made after an error.

-- In another encoding one name would be read as different ones by different drivers.
do $$ begin
    if getdatabaseencoding() <> 'UTF8' then
        raise exception 'lease: the database has the encoding %, and must have UTF8', getdatabaseencoding();
    end if;
end $$;

-- One row a lease. Read and change them by hand through the view lease, below.
create table if not exists lease_row (
    name     text collate "C" primary key,
    state    text not null default 'available', -- available, leased, expired, breaking, broken
    owner    text not null default '',
    until    timestamptz,                  -- when the state ends by itself
    duration text not null default '',     -- as granted: 15s, 1m0s, infinite
    epoch    bigint not null default 0,    -- the number of the token; it never falls
    id       uuid,                         -- in force, or the last one
    nanos    smallint not null default 0,  -- until is so many nanoseconds earlier
    version  bigint not null default 0,    -- another one after every change, but see below
    changed  timestamptz not null default clock_timestamp()
) with (fillfactor = 70);                  -- room for a renewal to stay on its page

-- The last change that waiters may wait for. Tables of version 1 do not have this column.
alter table lease_row add column if not exists signalled timestamptz;

-- One row keeps the order of tokens when rows are deleted. Its epoch and its version are never below
-- those of a deleted row.
create table if not exists lease_floor (
    one     boolean primary key default true check (one),
    epoch   bigint not null default 0,
    version bigint not null default 0
);

-- The version of these tables. The end of this file sets it. Tables of version 1 do not have this column.
alter table lease_floor add column if not exists schema integer not null default 0;
insert into lease_floor default values on conflict do nothing;

-- Every change of a row makes a new version of it. Time does not run backward from one change of a
-- row to the next, even if the clock of the server is set back.
--
-- A commit that notifies waits for every other commit that notifies. So a change by package pglease
-- does not notify. The package notifies afterwards, for many changes at once, and sets signalled in
-- case its process ends before that. Such a change sets the column changed. A change by hand does
-- not set this column, so the trigger notifies. An insert does not notify, because nothing waits for
-- it.
--
-- A renewal makes its version itself, and sets nothing but until, version and changed. For these
-- columns the trigger does not run. It does not run either if an operator sets only these columns of
-- the table by hand, and then no version is made.
create or replace function lease_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        execute format('update %I.lease_floor set epoch = greatest(epoch, $1), version = greatest(version, $2) + 1',
            tg_table_schema) using old.epoch, old.version;
        perform pg_notify('lease', '0 ' || old.name);
        return old;
    end if;
    if new.state not in ('available', 'leased', 'expired', 'breaking', 'broken') or not isfinite(new.until) then
        raise exception 'lease: no row can be % until %', new.state, new.until;
    end if;
    if tg_op = 'INSERT' then
        execute format('select greatest(epoch, $1), version + 1, clock_timestamp() from %I.lease_floor for share',
            tg_table_schema) into strict new.epoch, new.version, new.changed using new.epoch;
    elsif new.name <> old.name then
        raise exception 'lease: a lease cannot be renamed' using hint = 'delete the row';
    else
        new.epoch := greatest(new.epoch, old.epoch);
        new.version := old.version + 1;
        if new.changed <= old.changed then -- the statement has not set the column
            new.changed := greatest(clock_timestamp(), old.changed);
            new.signalled := new.changed;
            perform pg_notify('lease', (extract(epoch from new.changed) * 1000000)::bigint || ' ' || new.name);
        end if;
    end if;
    return new;
end $$;

create or replace trigger lease_change before insert or delete or update of name, state, owner, duration, epoch, id, nanos on lease_row
    for each row execute function lease_change();

-- lease_keep rejects statements after which tokens could fall.
create or replace function lease_keep() returns trigger language plpgsql as $$
begin
    raise exception 'lease: this % of % would forget the order of tokens', lower(tg_op), tg_table_name
        using hint = 'delete from lease; the epoch and the version of lease_floor may rise';
end $$;

create or replace trigger lease_keep before truncate on lease_row for each statement execute function lease_keep();
create or replace trigger lease_keep before delete or truncate on lease_floor for each statement execute function lease_keep();
create or replace trigger lease_rise before update on lease_floor for each row
    when (new.epoch < old.epoch or new.version < old.version) execute function lease_keep();

-- The leases, to be read and changed by hand. An update of any column of the view makes a new version.
-- It fails if the row has changed since the statement began.
create or replace view lease as select * from lease_row;

create or replace function lease_edit() returns trigger language plpgsql as $$
declare
    edited bigint;
begin
    execute format('update %I.lease_row set name = $2, state = $3, owner = $4, until = $5, duration = $6, epoch = $7, id = $8, nanos = $9
        where name = $1 and version = $10 and until is not distinct from $11', tg_table_schema)
        using old.name, new.name, new.state, new.owner, new.until, new.duration, new.epoch, new.id, new.nanos, old.version, old.until;
    get diagnostics edited = row_count;
    if edited = 0 then
        raise exception 'lease: % was changed meanwhile, and nothing is updated', old.name using errcode = 'serialization_failure',
            hint = 'try again; in a transaction, after select from lease ... for update, it cannot happen';
    end if;
    return new;
end $$;

create or replace trigger lease_edit instead of update on lease for each row execute function lease_edit();

-- The newest fencing token that each guarded resource was shown: see fencing.Advance. Keep it in the
-- database of the data that it guards.
create table if not exists lease_mark (
    name  text collate "C" primary key,
    token text collate "C" not null default ''
);

update lease_floor set schema = 2 where schema < 2;

-- A program that uses leases needs these permissions:
--   grant select, insert, update on lease_row, lease_mark to worker;
--   grant select, update on lease_floor to worker;
--
-- An operator who lists leases and breaks them, with pglease or with psql, needs these permissions:
--   grant select, update on lease_row, lease to operator;
--   grant select on lease_floor to operator;
