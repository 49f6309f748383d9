curl -sS --fail-with-body -H "Fencing-Token: $LEASE_TOKEN" --data 5 "$ACCOUNTS_URL"
