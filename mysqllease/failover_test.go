package mysqllease_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/mysqlserver"
)

// A failover to a replica that has not received the last grant gives the lease and its token a second time, unless
// the commit of the grant waits for the replica. README.md says so.
func TestFailover(t *testing.T) {
	semi, slave, option := "rpl_semi_sync_master_", "slave", "--rpl-semi-sync-slave-enabled=1"
	follow := "change master to master_host = '%s', master_port = %s, master_user = 'replica', master_password = 'secret', master_use_gtid = slave_pos"
	if mysqlserver.MySQL != "" {
		semi, slave, option = "rpl_semi_sync_source_", "replica", "--rpl-semi-sync-replica-enabled=1"
		follow = "change replication source to source_host = '%s', source_port = %s, source_user = 'replica', source_password = 'secret', source_auto_position = 1, get_source_public_key = 1"
	}
	waits := "set global " + semi + "enabled = 1, global " + semi + "wait_point = AFTER_SYNC, global " + semi + "timeout = "
	for what, c := range map[string]struct {
		settings string
		loses    bool
	}{
		"asynchronous":                           {"set global " + semi + "enabled = 0", true},
		"semi-synchronous":                       {waits + "3600000", false},
		"semi-synchronous with a short time-out": {waits + "100", true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			primary, replica := ownServer(t), ownServer(t, option)
			primary.exec(t, "mysql", "create user replica identified by 'secret'")
			primary.exec(t, "mysql", "grant replication slave on *.* to replica")
			host, port, _ := net.SplitHostPort(primary.Addr())
			replica.exec(t, "mysql", fmt.Sprintf(follow, host, port))
			replica.exec(t, "mysql", "start "+slave)
			database := primary.database(t)
			grant := func(s server, name string, id lease.ID) (lease.Token, error) {
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
			primary.exec(t, "mysql", c.settings)
			eventually(t, "a grant with the replica", func(context.Context) error { _, err := grant(primary, "second", idA); return err })
			replica.exec(t, "mysql", "stop "+slave)
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
