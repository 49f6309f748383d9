package mysqllease

import (
	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/leasetest"
)

var ConfigOf = configOf

// Over returns a Store whose queries go through transmit.
func Over(c *mysql.Config, transmit leasetest.Transmit) (*Store, error) {
	connector, err := newConnector("Over", c)
	if err != nil {
		return nil, err
	}
	return newStore(linked.Connector(transmit, connector), nil)
}
