package slots_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/slots"
)

func ExampleSlots_Run() {
	ctx, store := context.Background(), memory.New(nil) // for many processes, a store that they share
	s, err := slots.New(store.Authority(), "reports/", 3, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = s.Run(ctx, func(ctx context.Context, tok lease.Token) error {
		n, _ := slots.Number(ctx)
		fmt.Printf("works in slot %d with token %s\n", n, tok)
		return nil // or works until ctx ends
	})
	fmt.Println(err)
	// Output:
	// works in slot 0 with token 00000000000000000001
	// <nil>
}
