package mysqllease

import (
	"database/sql/driver"

	"github.com/go-sql-driver/mysql"
)

var ConfigOf = configOf

// Over returns a Store whose connections go through wrap.
func Over(c *mysql.Config, wrap func(driver.Conn) driver.Conn) (*Store, error) {
	connector, err := newConnector(c)
	if err != nil {
		return nil, err
	}
	connector.wrap = wrap
	return newStore(connector, nil)
}
