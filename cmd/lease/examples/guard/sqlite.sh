sqlite3 -bail "$DATABASE" <<SQL
.timeout 5000
begin immediate;
insert into lease_mark values ('accounts', '$LEASE_TOKEN') on conflict (name) do update set token = excluded.token;
update accounts set total = total + 5;
commit;
SQL
