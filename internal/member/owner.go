package member

import (
	"fmt"
	"slices"
	"strings"
)

// A Kind is a kind of lease that packages shards and slots have. Processes of different versions of the library share
// their names and owners. An owner begins with who the process is, and ends with fields: each is a text and then a value,
// which has no spaces.
type Kind struct {
	folder, name string
	fields       []string
}

var (
	ShardLease      = Kind{"shards/", "shard", []string{"#"}}
	MemberLease     = Kind{"members/", "member", []string{" weight=", " max=", " names=", " offers="}}
	SlotLease       = Kind{"slots/", "slot", slotFields}
	WaitingLease    = Kind{"waiting/", "waiting", slotFields} // in the queue for a slot
	AnnouncingLease = Kind{"n/", "announces", slotFields}     // the number of slots
)

var slotFields = []string{" id=", " priority=", " ticket=", " n=", " process="}

// Name returns the name of a lease of this kind under a prefix.
func (k Kind) Name(prefix string, last any) string { return prefix + k.folder + fmt.Sprint(last) }

// Owner returns the owner of a lease of this kind, with the first fields if there are fewer values.
func (k Kind) Owner(who string, values ...any) string {
	for i, v := range values {
		who += k.fields[i] + fmt.Sprint(v)
	}
	return who
}

// Cut is the inverse of Owner. The value of a field that is missing is empty.
func (k Kind) Cut(owner string) (who string, values []string) {
	values = make([]string, len(k.fields))
	for i, field := range slices.Backward(k.fields) {
		if at := strings.LastIndex(owner, field); at >= 0 && !strings.Contains(owner[at+1:], " ") {
			owner, values[i] = owner[:at], owner[at+len(field):]
		}
	}
	return owner, values
}

// Process returns which process the owner of a lease names and, if the lease is one of packages shards and slots, its
// kind. The owner of any other lease is the process.
func Process(name, owner string) (process, kind string) {
	for _, k := range []Kind{ShardLease, MemberLease, SlotLease, WaitingLease, AnnouncingLease} {
		who, values := k.Cut(owner)
		if !strings.Contains("/"+name, "/"+k.folder) || values[0] == "" {
			continue
		} else if len(k.fields) < len(slotFields) {
			return who, k.name
		} else if last := values[len(values)-1]; last != "" {
			return who + "/" + last, k.name
		}
	}
	return owner, ""
}
