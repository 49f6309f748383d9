package leasetest

import "strings"

var newRules = []rule{
	{"H22/bad-holders-are-refused", "what is out of range, or leaves no time to renew, is refused when the lease is made, and the message tells the value", 0, func(p *probe) {
		refused := func(what string, h Holder, value string) {
			if h.Duration == 0 {
				h.Duration = p.D
			}
			if h.Over = p.world().truth; h.Name == "" && value != `""` {
				h.Name = p.name
			}
			r := &recorder{TB: p.TB}
			r.run(func() { p.suite.newLease(r, h) })
			if said := strings.Join(r.messages, "\n"); said == "" {
				p.Errorf("a lease with %s was made", what)
			} else if !strings.Contains(said, value) {
				p.Errorf("a lease with %s was refused without a word of %s: %.200s", what, value, said)
			}
		}
		refused("a duration below zero", Holder{Duration: -p.D}, (-p.D).String())
		refused("a duration that leaves no time to renew", Holder{Duration: 1}, "1ns")
		refused("no name", Holder{}, `""`)
		for _, h := range hostile[1:] {
			refused("a name that is "+h.what, Holder{Name: h.name}, "")
			refused("an owner that is "+h.what, Holder{Owner: h.name}, "")
		}
	}},
}
