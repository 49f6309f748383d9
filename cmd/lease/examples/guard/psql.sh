psql -q -v ON_ERROR_STOP=1 -v token="$LEASE_TOKEN" -1 -f - "$DATABASE_URL" <<'SQL'
call lease_advance_mark('accounts', :'token');
update accounts set total = total + 5;
SQL
