package cli

import (
	"strings"
	"testing"
)

// A command without the store of a URL says which command has it, because its user cannot import a package.
func TestStoreOfAnotherCommand(t *testing.T) {
	_, err := (&call{store: "redis://u:secret@host"}).open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no store for redis URLs") || !strings.Contains(err.Error(), "(cd cmd/lease && go install .)") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}
