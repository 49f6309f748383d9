package blobtest

import (
	"net/http"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// snapshotBlob serves Snapshot Blob. A snapshot does not change the blob, so the lease is checked as for a
// read.
func snapshotBlob(c *call) (*reply, error) {
	cond, err := c.writeConditions()
	if err != nil {
		return nil, err
	}
	m, err := c.parseMetadata()
	if err != nil {
		return nil, err
	}
	return c.writeBlob(write{reads: true, cond: cond, prepare: func(f findResult) (plan, error) {
		if err := cond.checkWrite(f.entry.current.etag, f.entry.current.modified); err != nil {
			return plan{}, err
		}
		v := *f.entry.current
		if m != nil {
			v.metadata = m
		}
		return plan{v.size(), func(now time.Time) (*entry, *reply) {
			e := *f.entry
			v.snapshot = now.UTC().Truncate(100 * time.Nanosecond)
			if n := len(e.snapshots); n > 0 && !v.snapshot.After(e.snapshots[n-1].snapshot) {
				v.snapshot = e.snapshots[n-1].snapshot.Add(100 * time.Nanosecond) // two snapshots must have different times, which are their names
			}
			if m != nil {
				v.etag = c.newETag()
			}
			e.snapshots = append(e.snapshots[:len(e.snapshots):len(e.snapshots)], &v)
			rep := newReply(http.StatusCreated)
			rep.header.Set("x-ms-snapshot", v.snapshot.Format(sevenDigits))
			rep.header.Set("x-ms-request-server-encrypted", "false")
			c.describe(rep, v.etag, v.modified)
			return &e, rep
		}}, nil
	}})
}

func deleteSnapshot(c *call) (*reply, error) {
	cond, err := c.writeConditions()
	if err != nil {
		return nil, err
	}
	if v := c.header("x-ms-delete-snapshots"); v != "" {
		return nil, badHeader(c.r, "x-ms-delete-snapshots")
	}
	leave, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	f := c.account.find(c.container, c.blob)
	if f.container == nil {
		return nil, errContainerNotFound
	}
	var v *version
	if f.entry != nil {
		v = f.entry.versionAt(c.snapshot)
	}
	if v == nil {
		return nil, cond.missingError()
	}
	if err := c.admitSnapshot(lease.ActionWrite); err != nil {
		return nil, err
	}
	if err := cond.checkWrite(v.etag, v.modified); err != nil {
		return nil, err
	}
	e := *f.entry
	e.snapshots = slices.DeleteFunc(slices.Clone(e.snapshots), func(s *version) bool { return s == v })
	if !c.account.putEntry(c.container, f.container, c.blob, &e) {
		return nil, errContainerNotFound
	}
	c.reserved += v.size()
	return newReply(http.StatusAccepted), nil
}
