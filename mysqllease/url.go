package mysqllease

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open mysql:// with [open.Store], for MySQL and MariaDB. If the URL
// has no password, the password comes from the environment variable MYSQL_PWD, if it is set. The connection
// uses TLS if the URL has ?tls=true. The parameter tls can have every value that the driver allows, for
// example ?tls=preferred.
func init() {
	open.Register("mysql", "mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?tls=true]", openURL)
}

func openURL(_ context.Context, rawURL string) (open.Leases, error) {
	c, err := configOf(rawURL)
	if err != nil {
		return nil, err
	}
	s, err := New(c, nil)
	if err != nil {
		return nil, open.ErrMalformed
	}
	return s, nil
}

func configOf(rawURL string) (*mysql.Config, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Hostname() == "" || u.User.Username() == "" || u.Fragment != "" {
		return nil, open.ErrMalformed
	}
	c := mysql.NewConfig()
	c.Net, c.Addr = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306"))
	c.Logger = &mysql.NopLogger{} // the errors contain the same information
	c.User, c.DBName = u.User.Username(), strings.TrimPrefix(u.Path, "/")
	password, given := u.User.Password()
	if c.Passwd = password; !given {
		c.Passwd = os.Getenv("MYSQL_PWD")
	}
	parameters := u.Query()
	c.TLSConfig = parameters.Get("tls")
	if parameters.Del("tls"); len(parameters) > 0 || c.DBName == "" || strings.Contains(c.DBName, "/") {
		return nil, open.ErrMalformed
	}
	return c, nil
}
