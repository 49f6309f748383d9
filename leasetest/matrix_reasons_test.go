package leasetest

// reasons say why cells of the matrix are empty. The first that fits counts.
var reasons = []reason{
	// Stores.
	{"Stores", "R2", "", "otfr2c", "a record that is corrupt is in none of the states; the rules spoil one and write corrupt ones"},
	{"Stores", "R3", "", "tfr2c", "the clause is about one writing and reading; S3 reads every state after reopening and forgetting, S8 through another client"},
	{"Stores", "S1", "", "t", "S5 and S4 swap after time has passed"},
	{"Stores", "S1", "", "fr", "S2 and S3 swap every state after reopening and forgetting"},
	{"Stores", "S1", "", "2", "S2 and S8 have another client swap every state"},
	{"Stores", "S2", "", "tc", "a version changes with a swap alone; S1 swaps under contexts that end"},
	{"Stores", "S2", "", "f", "only what is available, expired or broken is forgotten (S9), and its absence is tried"},
	{"Stores", "S3", "leased|infinite|breaking", "f", "what is locked is not forgotten: S9"},
	{"Stores", "S3", "", "t2c", "an epoch is kept or not, whoever asks; another client is S8, a context S1"},
	{"Stores", "S4", "", "tf2c", "the store has one time for all records: one state is enough"},
	{"Stores", "S4", "", "r", "the store has one time for all records: one state is enough"},
	{"Stores", "S5", "available|released|infinite|broken|expired", "otfr2c", "a state without an until does not come to it"},
	{"Stores", "S5", "leased|breaking", "fr2c", "the rule of leased stands for both states that end; forgetting is S9, another client S4, a context S1"},
	{"Stores", "S6", "", "otfr2c", "a name is taken for another one whatever the record's state"},
	{"Stores", "S7", "released", "o", "a change of what is unlocked need not be signalled"},
	{"Stores", "S7", "", "tfr2c", "a watch depends on the change and not on what came before; one state is enough"},
	{"Stores", "S8", "", "tfrc", "a stale answer is one after a swap; reopening and forgetting are S3"},
	{"Stores", "S9", "available|released", "otfr2c", "what is available may be forgotten at any time: S3 keeps its epoch"},
	{"Stores", "S9", "", "tfr2c", "forgetting depends on the state and the time in it; clients and contexts have no part in it"},
	{"Stores", "S10", "available|released|broken|expired", "otfr2c", "a list need not show what is unlocked"},
	{"Stores", "S10", "", "tfr2c", "a list shows what a load shows: one locked state stands for the others"},

	// Authorities.
	{"Authorities", "M.*|A1|A7|A8", "", "r", "an authority decides by the record alone; M4 and S3 open it again in every state"},
	{"Authorities", "M.*|A1|A7|A8", "", "2", "an authority decides by the record alone; A4 has another client ask in every state, with every request"},
	{"Authorities", "M.*|A1|A7|A8", "", "c", "a context has no part in a decision; A6 tries every request in every state under a done one"},
	{"Authorities", "M.*", "", "ot", "the clause is about other states; M1 tries every request in every state, and M5 the ends"},
	{"Authorities", "R.*", "", "otr2c", "the clause is about what a record shows; M1 compares it after every request in every state"},
	{"Authorities", "A1|A7|A8", "", "ot", "the clause is about other states; M1 tries every request in every state"},
	{"Authorities", "A2|A3|A4|A5|A6", "", "otr2c", "the other clauses of A try it: time is A5 and M5, reopening M4 and S3, another client A2 and A4, contexts A3 and A6"},
	{"Authorities", "S.*", "", "otr2c", "TestStore tries it on stores; an authority is tried with one record"},

	// Holders.
	{"Holders", "M4|H22", "", "ot2cx", "tokens are the authority's; H22 is about the making of a holder, before it has a state"},
	{"Holders", "", "closed", "ot2cx", "H18 tries every method of a closed holder, and that nothing comes after"},
	{"Holders", "H13|H16|H5|H17", "breaking", "ot2cx", "H13 has the time, H5 the acquire, H17 the release and H13 the outage of a breaking lease"},
	{"Holders", "", "breaking", "ot2cx", "the clause is not about breaks; H13, H5 and H17 are"},
	{"Holders", "H1|H2|H3|H4|H6|H7|H8|H21", "lost|released", "ot2cx", "a holder that has ended its incarnation acquires as one that never held; H1 and H7 try both"},
	{"Holders", "N.*", "", "ot2cx", "a run acquires and releases by itself; H1, H15, H17 and H20 try the states"},
	{"Holders", "H9|H10|H11|H12|H13|H14|H15|H16|H19|H20", "idle|lost|released", "ot2cx", "nothing is held then: H1, H7 and H17 say what a holder does"},
	{"Holders", "", "", "2", "what another holder may have is decided by the authority; H1, H8 and H9 have others contend"},
	{"Holders", "", "", "c", "contexts belong to calls; H2, H5, H14, H17, H18 and H21 cancel those that there are"},
	{"Holders", "", "lost|released", "x", "nothing is held then, and what is sent gives up what was held: H3, H7 and H17"},
	{"Holders", "", "", "x", "outages are tried by H1, H3, H7, H9, H11, H15 and H17"},
	{"Holders", "", "", "ot", "the clause is about other states"},
}
