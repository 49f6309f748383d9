mysql -h "$MYSQL_HOST" -u "$MYSQL_USER" "$MYSQL_DATABASE" <<SQL
start transaction;
call lease_advance_mark('accounts', '$LEASE_TOKEN');
update accounts set total = total + 5;
commit;
SQL
