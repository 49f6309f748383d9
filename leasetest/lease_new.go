package leasetest

import (
	"fmt"
	"strings"
)

var newRules = []rule{
	{"H22/bad-holders-are-refused", "what is out of range, or leaves no time to renew, is refused when the lease is made: the constructor fails its test, and the message tells the value", 0, func(p *probe) {
		type bad struct {
			what   string
			holder Holder
			value  string // that the message tells
		}
		all := []bad{
			{"a duration below zero", Holder{Duration: -p.D}, (-p.D).String()},
			{"a duration that leaves no time to renew", Holder{Duration: 1}, "1ns"},
			{"no name", Holder{}, `""`},
		}
		for _, h := range badNames[1:] {
			all = append(all, bad{"a name that is " + h.what, Holder{Name: h.name}, ""}, bad{"an owner that is " + h.what, Holder{Owner: h.name}, ""})
		}
		w := p.world()
		var wrong []string
		for _, b := range all {
			h := b.holder
			if h.Authority = w.direct; h.Duration == 0 {
				h.Duration = p.D
			}
			if h.Name == "" && b.what != "no name" {
				h.Name = p.name
			}
			r := &recorder{TB: p.TB}
			r.run(func() { p.suite.newLease(r, h) })
			if said := strings.Join(r.messages, "\n"); said == "" {
				wrong = append(wrong, "a lease with "+b.what+" was made")
			} else if !strings.Contains(said, b.value) {
				wrong = append(wrong, fmt.Sprintf("a lease with %s was refused without a word of %s: %.200s", b.what, b.value, said))
			}
		}
		if len(wrong) > 0 {
			p.Errorf("%s", strings.Join(wrong, "\n"))
		}
	}},
}
