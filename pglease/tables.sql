-- This file makes the tables of package pglease, which keeps leases in PostgreSQL. Run it once, in the
-- schema of your choice, as the owner of that schema. Run it again to bring older tables up to date. It
-- keeps the leases and their tokens, and over tables that are up to date it changes nothing. It is one
-- statement, so either all of it happens or nothing. Several processes may run it at the same time.
do $lease$
begin

perform pg_advisory_xact_lock(hashtext('tables of pglease')); -- one process after the other

if current_schema is null then
    raise exception 'lease: the search_path names no schema' using errcode = 'invalid_schema_name';
end if;

-- The version of the tables is at the end of this file.
if exists (select from pg_attribute where attrelid = to_regclass(format('%I.lease_floor', current_schema)) and attname = 'schema') then
    if exists (select from lease_floor where schema >= 4) then
        return;
    end if;
end if;

perform set_config('client_min_messages', 'warning', true); -- say nothing about what exists already
perform set_config('lock_timeout', '1s', true);             -- rather fail than let renewals wait for long

-- In another encoding one name would be read as different ones by different drivers.
if getdatabaseencoding() <> 'UTF8' then
    raise exception 'lease: the database has the encoding %, and must have UTF8', getdatabaseencoding();
end if;

-- One row a lease. Read it through the view lease, below.
create table if not exists lease_row (
    name     text collate "C" primary key,
    state    text not null default 'available', -- available, leased, expired, breaking, broken
    owner    text not null default '',
    until    timestamptz,                  -- when the state ends by itself
    duration text not null default '',     -- as granted: 15s, 1m0s, infinite
    epoch    bigint not null default 0,    -- the number of the token; it never falls
    id       uuid,                         -- in force, or the last one
    nanos    smallint not null default 0,  -- until is so many nanoseconds earlier
    version  bigint not null default 0,    -- another one after every change
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

-- The version of these tables. Tables of version 1 do not have this column.
alter table lease_floor add column if not exists schema integer not null default 0;
insert into lease_floor default values on conflict do nothing;

-- Every change of a row makes a new version of it. Time does not run backward from one change of a
-- row to the next, even if the clock of the server is set back.
--
-- A statement of package pglease makes the version itself, and then no trigger runs. It does not notify
-- either, because a commit that notifies waits for every other commit that notifies: the package
-- notifies afterwards, for many changes at once. It sets signalled in case its process ends before that.
-- For a change by hand the trigger does all this. An insert does not notify, because nothing waits for
-- it. (A change by an older package makes no version, but it sets the column changed.)
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
        if new.changed <= old.changed then
            new.changed := greatest(clock_timestamp(), old.changed);
            new.signalled := new.changed;
            perform pg_notify('lease', (extract(epoch from new.changed) * 1000000)::bigint || ' ' || new.name);
        end if;
    end if;
    return new;
end $$;

create or replace trigger lease_change before insert or delete on lease_row
    for each row execute function lease_change();
create or replace trigger lease_update before update on lease_row for each row
    when (new.version <= old.version or new.epoch < old.epoch or new.name <> old.name) execute function lease_change();

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

-- The leases, to be read by hand. Before version 3 a trigger of the view did what lease_update does.
execute format('drop function if exists %I.lease_edit() cascade', current_schema);
create or replace view lease as select * from lease_row;

-- lease_break frees a lease by hand. Its holder learns of it, stops its work and releases the lease, at
-- the latest when the grace is over. Without a grace, the lease ends when it would end without a renewal,
-- and an infinite lease at once. The result is how long another process may have to wait. If the lease
-- is not held, there is an error.
create or replace function lease_break(lease_name text, grace interval default null)
returns interval language plpgsql set search_path from current as $$
declare
    l    lease_row;
    now  timestamptz;
    over timestamptz;
begin
    if grace < interval '0' then
        raise exception 'lease: the grace % must not be negative', grace using errcode = 'invalid_parameter_value';
    end if;
    select * into l from lease_row where name = lease_name for update;
    if l.name is null or l.state = 'available' then
        raise exception 'lease: % is not held', lease_name using errcode = 'no_data_found';
    end if;
    now := greatest(clock_timestamp(), l.changed);
    if l.state in ('leased', 'breaking') and coalesce(l.until > now, true) then
        over := least(l.until, now + coalesce(grace, case when l.until is null then interval '0' end));
    end if;
    if over > now then
        update lease_row set state = 'breaking', until = over, nanos = case when over = until then nanos else 0 end where name = lease_name;
        return over - now;
    end if;
    update lease_row set state = 'broken', until = null, nanos = 0 where name = lease_name;
    return interval '0';
end $$;

-- The newest fencing token that each guarded resource was shown: see fencing.Advance. Keep it in the
-- database of the data that it guards.
create table if not exists lease_mark (
    name  text collate "C" primary key,
    token text collate "C" not null default ''
);

-- lease_advance_mark guards a resource in SQL: call it at the beginning of a transaction that reads or writes
-- the resource. It raises the mark of the resource to the token, and blocks the other transactions that use this mark
-- until the transaction ends. If the token is older than the mark, or is no token, for example because a variable was
-- not set, there is an error, and the transaction cannot commit.
create or replace procedure lease_advance_mark(resource text, token text)
language plpgsql set search_path from current as $$
declare
    seen text;
begin
    if coalesce(resource, '') = '' then
        raise exception 'lease: the resource has no name' using errcode = 'invalid_parameter_value';
    end if;
    if (token ~ '^0[0-9]{19}$' and token collate "C" between '00000000000000000001' and '09223372036854775807') is not true then
        raise exception 'lease: % is not a fencing token of 20 digits', coalesce(quote_literal(token), 'null')
            using errcode = 'invalid_parameter_value';
    end if;
    insert into lease_mark as m (name, token) values ($1, $2)
        on conflict (name) do update set token = greatest(m.token, excluded.token) returning m.token into strict seen;
    if seen !~ '^0[0-9]{19}$' then
        raise exception 'lease: the mark of % is %, which is not a fencing token', resource, quote_literal(seen)
            using errcode = 'data_corrupted', hint = 'set it to the newest token of the lease';
    end if;
    if seen <> $2 then
        raise exception 'lease: the token % is older than %, which % has seen', $2, seen, resource
            using errcode = 'object_not_in_prerequisite_state', hint = 'another holder has the lease by now: stop';
    end if;
end $$;

update lease_floor set schema = 4 where schema < 4;

end $lease$;

-- A program that uses leases needs these permissions:
--   grant select, insert, update on lease_row, lease_mark to worker;
--   grant select, update on lease_floor to worker;
--
-- An operator who lists leases and breaks them, with pglease or with psql, needs these permissions:
--   grant select, update on lease_row, lease to operator;
--   grant select on lease_floor to operator;
