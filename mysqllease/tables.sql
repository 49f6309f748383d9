-- This file makes the tables of package mysqllease, which keeps leases in MySQL or MariaDB. Run it once in the
-- database of your choice, or call mysqllease.Migrate. Running it again keeps the leases and their tokens, but
-- replaces the procedures and triggers, so that requests of a running program can fail meanwhile. Migrate does
-- nothing if the tables are up to date. The user needs the privileges CREATE, ALTER, INDEX, CREATE VIEW, CREATE
-- ROUTINE, ALTER ROUTINE and TRIGGER. A server with a binary log allows triggers and functions only to a user with
-- SUPER, or if log_bin_trust_function_creators is set.

set @lease_sql_mode = @@sql_mode, sql_mode = 'STRICT_ALL_TABLES'; -- procedures keep the mode of their creation

-- One row a lease. All times are in microseconds since 1970 in UTC, so that no time zone matters. Names are bytes:
-- names that differ only by case, an accent or a space at the end are different. Read the rows through the view
-- lease, below.
create table if not exists lease_row (
    name      varbinary(1024) not null primary key,
    state     varchar(16) character set ascii collate ascii_bin not null default 'available', -- leased, expired, breaking, broken
    owner     varbinary(1024) not null default '',
    until     bigint,                      -- when the state ends by itself
    nanos     smallint not null default 0, -- until is so many nanoseconds earlier
    duration  bigint not null default 0,   -- as granted, in nanoseconds; -1 is infinite
    epoch     bigint not null default 0,   -- the number of the token; it never falls
    id        varchar(36) character set ascii collate ascii_bin not null default '', -- in force, or the last one
    changed   bigint not null default 0,   -- when the row was changed; every change has a later time, so it is also its version
    signalled bigint not null default 0    -- the last change that waiters may wait for
) engine = InnoDB row_format = dynamic;

-- One row keeps the order of tokens when rows are deleted: its epoch and its time are never below those of a
-- deleted row.
create table if not exists lease_floor (
    one     tinyint not null primary key,
    epoch   bigint not null,
    changed bigint not null,
    version integer not null -- of these tables
) engine = InnoDB;

-- The newest fencing token that each guarded resource has seen: see fencing.Advance.
create table if not exists lease_mark (
    name  varbinary(1024) not null primary key,
    token varchar(20) character set ascii collate ascii_bin not null
) engine = InnoDB row_format = dynamic;

-- The leases, to be read by a person. Times are in UTC. A row with the state leased and a time until which is past is an
-- expired lease, because no process changes the row when a lease expires.
create or replace sql security invoker view lease as select
    convert(name using utf8mb4) as name, state, convert(owner using utf8mb4) as owner,
    timestampadd(microsecond, until, '1970-01-01 00:00:00.000000') as until,
    case duration when -1 then 'infinite' else concat(duration / 1000000000, ' s') end as duration, epoch, id,
    timestampadd(microsecond, changed, '1970-01-01 00:00:00.000000') as changed
from lease_row;

delimiter //

-- The triggers matter only for changes by hand: a change of a row makes a new version of it and wakes its waiters,
-- and no epoch falls. A statement of package mysqllease does that itself.
drop trigger if exists lease_insert//
create trigger lease_insert before insert on lease_row for each row begin
    declare least_epoch, least_changed bigint;
    select epoch, changed into least_epoch, least_changed from lease_floor where one = 1;
    set new.epoch = greatest(new.epoch, least_epoch);
    if new.changed <= least_changed then
        set new.changed = greatest(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), least_changed + 1);
    end if;
    set new.signalled = new.changed;
end//

drop trigger if exists lease_update//
create trigger lease_update before update on lease_row for each row begin
    if new.name <> old.name then
        signal sqlstate '45000' set message_text = 'lease: a lease cannot be renamed: delete the row';
    end if;
    set new.epoch = greatest(new.epoch, old.epoch);
    if new.changed <= old.changed then
        set new.changed = greatest(timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), old.changed + 1);
        set new.signalled = new.changed;
    end if;
end//

drop trigger if exists lease_delete//
create trigger lease_delete before delete on lease_row for each row
    update lease_floor set epoch = greatest(epoch, old.epoch), changed = greatest(changed, old.changed) + 1 where one = 1//

drop trigger if exists lease_rise//
create trigger lease_rise before update on lease_floor for each row begin
    if new.epoch < old.epoch or new.changed < old.changed then
        signal sqlstate '45000' set message_text = 'lease: this would forget the order of tokens';
    end if;
end//

drop trigger if exists lease_keep//
create trigger lease_keep before delete on lease_floor for each row
    signal sqlstate '45000' set message_text = 'lease: this would forget the order of tokens'//

-- lease_writable fails at a read-only server, for every user: it may be an old primary or a replica, but root and other
-- administrators may write there.
drop function if exists lease_writable//
create function lease_writable() returns boolean no sql sql security invoker begin
    if cast(@@global.read_only as char) not in ('0', 'OFF') then
        signal sqlstate 'HY000' set mysql_errno = 1290, message_text = 'lease: the server is read-only';
    end if;
    return true;
end//

-- lease_swap replaces a row if its version is still the one given, and returns the time of the change, which is the
-- new version, or 0. It reads the clock while the row is locked, and changes the row only if the clock has not reached
-- the time "ends". The change is not before the time "earliest". The version of a name without a row is that of
-- lease_floor, and changes when any row is deleted, which is impossible while lease_floor is locked.
drop procedure if exists lease_swap//
create procedure lease_swap(lease_name varbinary(1024), absent boolean, version bigint, earliest bigint, ends bigint, wakes boolean,
    new_state varchar(16) character set ascii, new_owner varbinary(1024), new_id varchar(36) character set ascii,
    new_epoch bigint, new_duration bigint, new_until bigint, new_nanos smallint) modifies sql data sql security invoker
begin
    declare writable boolean default lease_writable(); -- DO would ignore the error
    declare at bigint;
    declare found boolean default false;
    declare exit handler for sqlexception begin rollback; resignal; end;
    start transaction;
    if absent then
        select true into found from lease_floor f where f.one = 1 and f.changed = version lock in share mode;
    else
        select true into found from lease_row where name = lease_name and changed = version for update;
    end if;
    set at = greatest(timestampdiff(microsecond, '1970-01-01', sysdate(6)), version + 1, earliest);
    if not found or at >= ends then
        set at = 0;
    elseif absent then
        insert into lease_row (name, state, owner, id, epoch, duration, until, nanos, changed)
            values (lease_name, new_state, new_owner, new_id, new_epoch, new_duration, new_until, new_nanos, at);
    else
        update lease_row set state = new_state, owner = new_owner, id = new_id, epoch = new_epoch, duration = new_duration,
            until = new_until, nanos = new_nanos, changed = at, signalled = if(wakes, at, signalled) where name = lease_name;
    end if;
    commit;
    select at;
end//

-- lease_renew renews many leases in one transaction. The argument is an array of [number, name, owner, id, epoch,
-- duration], where name and owner are in hexadecimal. The result is an array of [number, changed] for each lease that
-- was renewed. It leaves out a lease that has ended or has another holder, and one whose row another
-- transaction has locked, so that one such row does not delay all others. The time of each renewal is read after
-- its row is locked.
drop procedure if exists lease_renew//
create procedure lease_renew(wanted longtext character set utf8mb4) modifies sql data sql security invoker begin
    declare writable boolean default lease_writable();
    declare missing boolean default false;
    declare n integer;
    declare lease_name, lease_owner varbinary(1024);
    declare lease_id varchar(36) character set ascii collate ascii_bin;
    declare lease_epoch, lease_duration, previous, ends, at bigint;
    declare renewed longtext character set ascii default '';
    declare c cursor for select i, unhex(name), unhex(owner), id, epoch, duration from json_table(wanted, '$[*]' columns (
        i integer path '$[0]', name varchar(2048) path '$[1]', owner varchar(2048) path '$[2]', id varchar(36) path '$[3]',
        epoch bigint path '$[4]', duration bigint path '$[5]')) w;
    declare continue handler for not found set missing = true;
    declare exit handler for sqlexception begin rollback; resignal; end;
    start transaction;
    open c;
    one: loop
        set missing = false;
        fetch c into n, lease_name, lease_owner, lease_id, lease_epoch, lease_duration;
        if missing then leave one; end if;
        select changed, until into previous, ends from lease_row
            where name = lease_name and state = 'leased' and id = lease_id and epoch = lease_epoch and owner = lease_owner
                and duration = lease_duration and nanos = 0 for update skip locked;
        if missing then iterate one; end if;
        set at = greatest(timestampdiff(microsecond, '1970-01-01', sysdate(6)), previous + 1);
        if at < ends then
            update lease_row set changed = at, until = at + lease_duration div 1000 where name = lease_name;
            set renewed = concat(renewed, ',[', n, ',', at, ']');
        end if;
    end loop;
    close c;
    commit;
    select concat('[', substr(renewed, 2), ']');
end//

-- lease_break frees a lease by hand. Its holder learns of it, stops its work and releases the lease, at the latest
-- after so many seconds of grace. If the grace is null, the lease ends when it would end without a renewal, and an
-- infinite lease at once. It shows for how many seconds another process may have to wait. The name is taken as the bytes
-- of the client, whatever character set the client has declared, so a script in UTF-8 needs no LANG.
drop procedure if exists lease_break//
create procedure lease_break(lease_name varbinary(1024), grace decimal(20, 6)) modifies sql data sql security invoker begin
    declare lease_state varchar(16) character set ascii;
    declare ends, at bigint;
    declare exit handler for sqlexception begin rollback; resignal; end;
    if grace < 0 then
        signal sqlstate '45000' set message_text = 'lease: the grace must not be negative';
    end if;
    start transaction;
    select state, until, greatest(changed + 1, timestampdiff(microsecond, now(6), sysdate(6)) + timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)))
        into lease_state, ends, at from lease_row where name = lease_name for update;
    if lease_state is null or lease_state = 'available' then
        signal sqlstate '45000' set message_text = 'lease: the lease is not held';
    end if;
    if lease_state in ('leased', 'breaking') and coalesce(ends > at, true) then
        set ends = least(coalesce(ends, at + coalesce(grace, 0) * 1000000), coalesce(at + grace * 1000000, ends, at));
    else
        set ends = at;
    end if;
    update lease_row set state = if(ends > at, 'breaking', 'broken'), nanos = if(ends > at and ends = until, nanos, 0),
        until = if(ends > at, ends, null), changed = at, signalled = at where name = lease_name;
    commit;
    select (ends - at) / 1000000 as seconds;
end//

-- lease_advance_mark guards a resource in SQL: call it at the beginning of a transaction that reads or writes the
-- resource. It raises the mark of the resource to the token, and blocks the other transactions that use this mark
-- until the transaction ends. If the token is older than the mark, or is no token, for example because a variable was
-- not set, there is an error, and the transaction must be rolled back, as it is when the program mysql stops at it.
-- The name of the resource is taken as the bytes of the client, as in lease_break, and must be valid UTF-8: in the
-- character set that a client without LANG declares, another name would have another mark.
drop procedure if exists lease_advance_mark//
create procedure lease_advance_mark(resource varbinary(1024), lease_token varchar(255) character set utf8mb4) modifies sql data sql security invoker begin
    declare seen varchar(20) character set ascii;
    declare message varchar(128) character set utf8mb4;
    if coalesce(resource, '') = '' then
        signal sqlstate '45000' set message_text = 'lease: the resource has no name';
    end if;
    if not cast(convert(resource using utf8mb4) as binary) <=> resource then
        signal sqlstate '45000' set message_text = 'lease: the name of the resource is not valid UTF-8';
    end if;
    if not coalesce(length(lease_token) = 20 and lease_token regexp '^0[0-9]{19}$' and lease_token between '00000000000000000001' and '09223372036854775807', false) then
        signal sqlstate '45000' set message_text = 'lease: the token is not a fencing token of 20 digits';
    end if;
    insert into lease_mark (name, token) values (resource, lease_token)
        on duplicate key update lease_mark.token = greatest(lease_mark.token, lease_token);
    select m.token into seen from lease_mark m where m.name = resource for update;
    if not (length(seen) = 20 and seen regexp '^0[0-9]{19}$') then
        signal sqlstate '45000' set message_text = 'lease: the mark is not a fencing token: set it to the newest token of the lease';
    end if;
    if seen <> lease_token then
        set message = concat('lease: the token ', lease_token, ' is older than ', seen, ', which the resource has seen');
        signal sqlstate '45000' set message_text = message;
    end if;
end//

delimiter ;

insert into lease_floor (one, epoch, changed, version) values (1, 0, 0, 2) on duplicate key update version = greatest(version, 2);

set sql_mode = @lease_sql_mode;

-- A program that uses leases needs these privileges, in which d is the database:
--   grant select, insert, update on d.lease_row to worker;
--   grant select, update on d.lease_floor to worker;
--   grant select, insert, update on d.lease_mark to worker;
--   grant execute on d.* to worker;
