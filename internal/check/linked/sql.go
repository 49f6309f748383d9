package linked

import (
	"context"
	"database/sql/driver"

	"github.com/fencedlease/lease/leasetest"
)

// Connector returns a connector of database/sql whose connections pass each query through transmit. An error of the
// database is an answer. The connections of next must implement driver.QueryerContext, and can do nothing but query.
func Connector(transmit leasetest.Transmit, next driver.Connector) driver.Connector {
	return connector{next, transmit}
}

type connector struct {
	driver.Connector
	transmit leasetest.Transmit
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return sqlConn{conn, c.transmit}, nil
}

type sqlConn struct {
	driver.Conn
	transmit leasetest.Transmit
}

func (c sqlConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	lost := c.transmit(ctx, func() error {
		rows, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return nil
	})
	if lost == nil {
		return rows, err
	}
	if rows != nil {
		rows.Close()
	}
	return nil, lost
}
