package blobtest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencedlease/lease"
)

// leaseResource serves Lease Blob and Lease Container.
func leaseResource(c *call) (*reply, error) {
	req, err := c.leaseRequest()
	if err != nil {
		return nil, err
	}
	if !c.access.any("w") && (req.Action != lease.ActionBreak || !c.access.mayBreak()) {
		return nil, errPermission
	}
	parse := c.writeConditions
	if c.kind == kindContainer {
		parse = c.containerConditions
	}
	cond, err := parse()
	if err != nil {
		return nil, err
	}
	leave, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	etag, modified, err := c.checkResource(cond)
	if err != nil {
		return nil, err
	}
	elapsed := c.startStopwatch()
	res, err := c.do(req)
	if err != nil {
		return nil, err
	}

	rep := newReply(leaseStatus[req.Action])
	// "The Lease Blob operation does not modify this property."
	c.describe(rep, etag, modified)
	if c.version < versionStrictLease {
		rep.header.Del("ETag") // "returned for requests made against version 2013-08-15 and later"
	}
	switch req.Action {
	case lease.ActionAcquire, lease.ActionChange:
		setHeader(rep.header, headerID, req.Proposed.String())
	case lease.ActionRenew:
		setHeader(rep.header, headerID, req.ID.String())
	case lease.ActionBreak:
		left := breakTime(req, res, elapsed())
		setHeader(rep.header, headerLeft, strconv.FormatInt(int64(left/time.Second), 10))
	}
	return rep, nil
}

// startStopwatch returns a function that measures the time since the call. An authority can use the server's
// clock or the machine's clock, so the function measures with both, and returns the longer time.
func (c *call) startStopwatch() (elapsed func() time.Duration) {
	began, realBegan := c.o.Clock.Now(), time.Now()
	return func() time.Duration { return max(c.o.Clock.Now().Sub(began), time.Since(realBegan)) }
}

// breakTime returns the "approximate time remaining in the lease period", which its caller truncates to
// seconds. This time is the break period or the remaining duration of the lease, whichever is shorter. During
// the request to the authority, which took callTime, a part of the break period may already have passed.
func breakTime(req lease.Request, res lease.Result, callTime time.Duration) time.Duration {
	left := res.MaxRemaining()
	if period, ok := req.Period.Get(); ok && left > 0 && left < period && left+callTime >= period {
		return period
	}
	return left
}

var leaseStatus = map[lease.Action]int{
	lease.ActionAcquire: http.StatusCreated,
	lease.ActionRenew:   http.StatusOK,
	lease.ActionChange:  http.StatusOK,
	lease.ActionRelease: http.StatusOK,
	lease.ActionBreak:   http.StatusAccepted,
}

// checkResource returns the entity tag of the resource and the time of its last change. It returns a failure
// if the resource does not exist, or if a condition of the request does not hold.
func (c *call) checkResource(cond conditions) (etag string, modified time.Time, err error) {
	f := c.account.find(c.container, c.blob)
	switch {
	case f.container == nil:
		return "", modified, errContainerNotFound
	case c.kind == kindContainer:
		etag, modified = f.etag, f.modified
	case f.entry == nil:
		return "", modified, cond.missingError()
	case f.entry.current != nil:
		etag, modified = f.entry.current.etag, f.entry.current.modified
	default: // a blob with only uncommitted blocks can also be leased
		v := f.uncommittedVersion()
		etag, modified = v.etag, v.modified
	}
	return etag, modified, cond.checkWrite(etag, modified)
}

// leaseRequest parses the headers of a lease operation.
func (c *call) leaseRequest() (req lease.Request, err error) {
	// "Note that a lease cannot be granted for a blob snapshot [...] 400 (Bad Request)."
	if !c.snapshot.IsZero() {
		return req, errSnapshot
	}
	old := c.version < lease.Version20120212
	if old && c.kind == kindContainer {
		return req, badHeader(c.r, headerVersion) // Lease Container was added in version 2012-02-12
	}
	action := strings.ToLower(c.header(headerAction))
	if action == "" {
		return req, noHeader(headerAction)
	}
	if err := req.Action.UnmarshalText([]byte(action)); err != nil || leaseStatus[req.Action] == 0 {
		return req, badHeader(c.r, headerAction)
	}
	req.Version, req.Owner = c.version, ownerLabel(c.r)
	switch req.Action {
	case lease.ActionRenew, lease.ActionChange, lease.ActionRelease:
		if req.ID = c.id; req.ID.IsZero() {
			return req, noHeader(headerID)
		}
	}
	if (req.Action == lease.ActionAcquire || req.Action == lease.ActionChange) && !old {
		if req.Proposed, err = c.parseProposed(req.Action); err != nil {
			return req, err
		}
	}
	if req.Action == lease.ActionAcquire {
		if old || req.Proposed.IsZero() {
			// "The Blob service will generate a lease ID if one is not specified."
			req.Proposed = lease.ID(uuid.New())
		}
		if req.Duration, err = c.parseDuration(old); err != nil {
			return req, err
		}
	}
	if req.Action == lease.ActionBreak && !old {
		if req.Period, err = c.parsePeriod(); err != nil {
			return req, err
		}
	}
	if err := limits.Check(req); err != nil {
		return req, c.refused(req.Action, lease.Result{}, err)
	}
	return req, nil
}

// parseProposed parses the header x-ms-proposed-lease-id: "Version 2012-02-12 and newer, optional for
// acquire, required for change. [...] The Blob service returns 400 (Invalid request) if the proposed
// lease ID is not in the correct format."
func (c *call) parseProposed(a lease.Action) (id lease.ID, err error) {
	s := c.header(headerProposed)
	switch {
	case s == "" && a == lease.ActionChange:
		return id, noHeader(headerProposed)
	case s == "":
		return id, nil
	}
	if id, err = lease.ParseID(s); err != nil || id.IsZero() {
		return id, badHeader(c.r, headerProposed)
	}
	return id, nil
}

// parseDuration parses the header x-ms-lease-duration: "only allowed and required on an acquire operation.
// Specifies the duration of the lease, in seconds, or negative one (-1) for a lease that never expires."
func (c *call) parseDuration(old bool) (time.Duration, error) {
	s := c.header(headerDuration)
	switch {
	case old:
		return 0, nil // the header did not exist yet
	case s == "":
		return 0, noHeader(headerDuration)
	case s == "-1":
		return lease.Infinite, nil
	}
	return c.parseSeconds(headerDuration, s)
}

// parsePeriod parses the header x-ms-lease-break-period: "the proposed duration of seconds that the lease
// should continue before it is broken, between 0 and 60 seconds."
func (c *call) parsePeriod() (lease.Period, error) {
	s := c.header(headerPeriod)
	if s == "" {
		return lease.Period{}, nil
	}
	d, err := c.parseSeconds(headerPeriod, s)
	return lease.Grace(d), err
}

func (c *call) parseSeconds(header, s string) (time.Duration, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, badHeader(c.r, header)
	}
	return time.Duration(n) * time.Second, nil
}

// ownerLabel returns the User-Agent as the owner of the lease, because the protocol has no field for it.
func ownerLabel(r *http.Request) string {
	s := r.Header.Get(headerOwner)
	return strings.ReplaceAll(strings.ToValidUTF8(s[:min(len(s), 256)], ""), "\x00", "")
}

func (c *call) addLease(rep *reply, r lease.Record) {
	status, state, duration := leaseWords(r)
	rep.header.Set("x-ms-lease-status", status)
	if c.version >= lease.Version20120212 {
		rep.header.Set("x-ms-lease-state", state)
		if duration != "" {
			rep.header.Set("x-ms-lease-duration", duration)
		}
	}
}

// leaseWords returns the status, the state and the duration of a lease as the words that headers and lists
// contain, for example "locked", "leased" and "infinite". Unless the lease is in the state Leased, the
// duration is empty.
func leaseWords(r lease.Record) (status, state, duration string) {
	status = "unlocked"
	if r.State.Locked() {
		status = "locked"
	}
	if r.State == lease.Leased {
		duration = "fixed"
		if r.Duration == lease.Infinite {
			duration = "infinite"
		}
	}
	return status, r.State.String(), duration
}
