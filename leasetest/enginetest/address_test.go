package enginetest

import "testing"

// Two processes that ask for addresses at the same time never get the same one, although neither has
// started a server yet.
func TestFreeAddresses(t *testing.T) {
	var processes [2]addresses
	returned := map[string]bool{}
	for range 5 * blockSize {
		for i := range processes {
			address, err := processes[i].next()
			if err != nil {
				t.Fatal(err)
			}
			if returned[address] {
				t.Fatalf("%s was returned twice", address)
			}
			returned[address] = true
		}
	}
	for i := range processes {
		for _, l := range processes[i].claims {
			l.Close()
		}
	}
}
