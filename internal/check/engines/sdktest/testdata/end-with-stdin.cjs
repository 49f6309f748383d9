// Ends the process when its parent does: then standard input is closed.
process.stdin.on('end', () => process.exit()).resume()
