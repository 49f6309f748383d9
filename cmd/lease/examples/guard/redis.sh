redis-cli -e -u "$REDIS_URL" FCALL lease_advance_mark 2 '{accounts}:mark' '{accounts}:total' "$LEASE_TOKEN" INCRBY 5
