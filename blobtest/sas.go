package blobtest

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// admitSignature verifies a shared access signature. The signature of an account has the fields ss and srt,
// and the signature of a service has the field sr. The times in a signature are compared with the server's
// clock, so that a test can let the signature expire.
func (c *call) admitSignature(op *operation) error {
	q := c.query
	for _, name := range []string{"si", "skoid", "sktid", "saoid", "suoid", "ses"} {
		if q.Get(name) != "" {
			return unauthenticated("The field " + name + " of a shared access signature is not served here.")
		}
	}
	version, err := parseVersion(q.Get("sv"))
	if err != nil || version < lease.Version20120212 {
		return unauthenticated("sv is mandatory, and must be 2012-02-12 or newer.")
	}
	ofAccount := q.Get("ss") != "" || q.Get("srt") != ""
	if ofAccount && version < versionProtocol {
		return unauthenticated("sv must be 2015-04-05 or newer in the signature of an account.")
	}
	text := c.serviceText(version)
	if ofAccount {
		text = c.accountText(version)
	}
	if !verify(c.account.key, text, q.Get("sig")) {
		return unauthenticated("Signature did not match. String to sign used was " + text)
	}
	if err := c.checkTimes(); err != nil {
		return err
	}
	if err := c.checkSource(); err != nil {
		return err
	}
	if ofAccount {
		err = c.checkAccountScope(op)
	} else {
		err = c.checkServiceScope(op)
	}
	if err != nil {
		return err
	}
	c.access = access{permissions: q.Get("sp"), version: version}
	if !c.access.any(op.permissions) {
		return errPermission
	}
	return nil
}

// These versions of the service added fields to the string that a client signs.
const (
	versionHeaders   lease.Version = 2013_08_15 // rscc and similar fields
	versionSlashBlob lease.Version = 2015_02_21 // the resource begins with /blob
	versionProtocol  lease.Version = 2015_04_05 // spr and sip; account signatures
	versionResource  lease.Version = 2018_11_09 // sr and the snapshot
	versionScope     lease.Version = 2020_12_06 // the encryption scope

	// From version 2017-07-29 on, the permission to delete a blob is enough to break its lease.
	versionDeleteBreaks lease.Version = 2017_07_29
)

// accountText returns the string that the client signs for a shared access signature of an account.
func (c *call) accountText(v lease.Version) string {
	q := c.query
	lines := []string{c.account.name, q.Get("sp"), q.Get("ss"), q.Get("srt"), q.Get("st"), q.Get("se"), q.Get("sip"), q.Get("spr"), q.Get("sv")}
	if v >= versionScope {
		lines = append(lines, q.Get("ses"))
	}
	return strings.Join(lines, "\n") + "\n"
}

// serviceText returns the string to sign for a shared access signature of a container, a blob or a snapshot.
func (c *call) serviceText(v lease.Version) string {
	q := c.query
	resource := "/" + c.account.name + "/" + c.container
	if v >= versionSlashBlob {
		resource = "/blob" + resource
	}
	if q.Get("sr") != "c" {
		resource += "/" + c.blob
	}
	lines := []string{q.Get("sp"), q.Get("st"), q.Get("se"), resource, q.Get("si")}
	if v >= versionProtocol {
		lines = append(lines, q.Get("sip"), q.Get("spr"))
	}
	lines = append(lines, q.Get("sv"))
	if v >= versionResource {
		snapshot := ""
		if q.Get("sr") == "bs" {
			snapshot = q.Get("snapshot")
		}
		lines = append(lines, q.Get("sr"), snapshot)
	}
	if v >= versionScope {
		lines = append(lines, q.Get("ses"))
	}
	if v >= versionHeaders {
		lines = append(lines, q.Get("rscc"), q.Get("rscd"), q.Get("rsce"), q.Get("rscl"), q.Get("rsct"))
	}
	return strings.Join(lines, "\n")
}

// overrideHeaders sets those response headers for which the signature contains values. For example, the field
// rscc contains the header Cache-Control.
func (c *call) overrideHeaders(rep *reply) {
	version, err := parseVersion(c.query.Get("sv"))
	if c.access.all || err != nil || version < versionHeaders {
		return
	}
	for field, name := range map[string]string{
		"rscc": "Cache-Control", "rscd": "Content-Disposition", "rsce": "Content-Encoding", "rscl": "Content-Language", "rsct": "Content-Type",
	} {
		if v := c.query.Get(field); v != "" {
			rep.header.Set(name, v)
		}
	}
}

// checkTimes checks the two times of a signature: the expiry time in the field se, and the optional start
// time in the field st.
func (c *call) checkTimes() error {
	now := c.o.Clock.Now()
	end, err := parseISO(c.query.Get("se"))
	if err != nil {
		return unauthenticated("Signed expiry time [" + c.query.Get("se") + "] must be a time in UTC.")
	}
	if s := c.query.Get("st"); s != "" {
		start, err := parseISO(s)
		if err != nil || now.Before(start) {
			return unauthenticated("Signature not valid in the specified time frame: Start [" + s + "] - Current [" + now.Format(time.RFC1123) + "]")
		}
	}
	if !now.Before(end) {
		return unauthenticated("Signature not valid in the specified time frame: Expiry [" + c.query.Get("se") + "] - Current [" + now.Format(time.RFC1123) + "]")
	}
	return nil
}

func parseISO(s string) (t time.Time, err error) {
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04Z", time.RFC3339Nano} {
		if t, err = time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return t, err
}

// checkSource checks the field spr, which limits the protocol, and the field sip, which limits addresses.
func (c *call) checkSource() error {
	if c.query.Get("spr") == "https" && !c.secure() {
		return errProtocolScope
	}
	sip := c.query.Get("sip")
	if sip == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		return errSourceScope
	}
	first, last, isRange := strings.Cut(sip, "-")
	if !isRange {
		last = first
	}
	addr, err1 := netip.ParseAddr(host)
	low, err2 := netip.ParseAddr(first)
	high, err3 := netip.ParseAddr(last)
	if err1 != nil || err2 != nil || err3 != nil {
		return errSourceScope
	}
	if addr = addr.Unmap(); addr.Less(low) || high.Less(addr) {
		return errSourceScope
	}
	return nil
}

// checkAccountScope checks the field ss, which lists services, and the field srt, which lists resource types.
func (c *call) checkAccountScope(op *operation) error {
	if !strings.Contains(c.query.Get("ss"), "b") {
		return errServiceScope
	}
	if !strings.Contains(c.query.Get("srt"), c.resourceType(op)) {
		return errResourceScope
	}
	return nil
}

// resourceType returns the letter that the field srt of a signature must contain to permit the operation.
func (c *call) resourceType(op *operation) string {
	switch {
	case op.resourceType != "":
		return op.resourceType
	case c.container == "":
		return "s"
	case c.blob == "":
		return "c"
	}
	return "o"
}

// checkServiceScope checks the field sr of a signature: c for a container and its blobs, b for a blob, or bs
// for a snapshot. The only operation on a container that c permits is List Blobs.
func (c *call) checkServiceScope(op *operation) error {
	sr := c.query.Get("sr")
	switch {
	case c.container == "":
		return errAccountScope
	case c.kind == kindContainer && (sr != "c" || !op.listsBlobs):
		return errAccountScope
	case sr == "bs" && c.snapshot.IsZero(), sr != "c" && sr != "b" && sr != "bs":
		return unauthenticated("sr is mandatory, and must fit the resource.")
	}
	return nil
}
