package engine

// Holds reports whether the Gate counts the named lease as held.
func (g *Gate) Holds(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.room.held[name]
	return ok
}
