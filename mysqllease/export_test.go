package mysqllease

var ConfigOf, NewConnector, NewStore = configOf, newConnector, newStore
