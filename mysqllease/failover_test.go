package mysqllease_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A failover to a replica that has not received the last grant gives the lease and its token a second time, unless
// the commit of the grant waits for the replica. README.md says so.
func TestFailover(t *testing.T) {
	for what, c := range map[string]struct {
		settings string
		loses    bool
	}{
		"asynchronous":                           {"rpl_semi_sync_master_enabled = 0", true},
		"semi-synchronous":                       {"rpl_semi_sync_master_enabled = 1, global rpl_semi_sync_master_wait_point = AFTER_SYNC, global rpl_semi_sync_master_timeout = 3600000", false},
		"semi-synchronous with a short time-out": {"rpl_semi_sync_master_enabled = 1, global rpl_semi_sync_master_wait_point = AFTER_SYNC, global rpl_semi_sync_master_timeout = 100", true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			primary, replica := ownServer(t), ownServer(t, "--rpl-semi-sync-slave-enabled=1")
			primary.exec(t, "mysql", "grant replication slave on *.* to replica identified by 'secret'")
			host, port, _ := net.SplitHostPort(primary.Addr())
			replica.exec(t, "mysql", "change master to master_host = '"+host+"', master_port = "+port+", master_user = 'replica', master_password = 'secret', master_use_gtid = slave_pos")
			replica.exec(t, "mysql", "start slave")
			database := primary.database(t)
			grant := func(s *server, name string, id lease.ID) (lease.Token, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				res, err := s.store(t, database, nil).Authority().Do(ctx, name, acquire(id, time.Hour))
				return res.Record.Token(), err
			}
			eventually(t, "a grant", func(context.Context) error { _, err := grant(primary, "first", idA); return err })
			eventually(t, "the replica has it", func(ctx context.Context) error {
				_, err := replica.store(t, database, nil).Load(ctx, "first")
				return err
			})
			primary.exec(t, "mysql", "set global "+c.settings)
			eventually(t, "a grant with the replica", func(context.Context) error { _, err := grant(primary, "second", idA); return err })
			replica.exec(t, "mysql", "stop slave")
			old, err := grant(primary, "x", idA)
			if granted := err == nil; granted != c.loses {
				t.Errorf("acquire without the replica: %v", err)
			}
			primary.Kill()
			again, err := grant(replica, "x", idB)
			if err != nil {
				t.Fatalf("acquire after the failover: %v", err)
			}
			if twice := old == again; twice != c.loses {
				t.Errorf("the first holder has the token %q, the second %q", old, again)
			}
		})
	}
}
