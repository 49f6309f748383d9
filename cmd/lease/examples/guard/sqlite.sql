create table if not exists lease_mark (
    name  text primary key,
    token text not null constraint "not a token" check (length(token) = 20 and token not glob '*[^0-9]*')
);
create trigger if not exists lease_mark_rises before update on lease_mark when new.token < old.token
begin
    select raise(abort, 'stale token');
end;
