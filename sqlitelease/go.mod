module github.com/fencedlease/lease/sqlitelease

go 1.26.0

replace (
	github.com/fencedlease/lease => ../
	github.com/fencedlease/lease/cli => ../cli
)

require (
	github.com/fencedlease/lease v0.0.0
	github.com/fencedlease/lease/cli v0.0.0
	golang.org/x/sys v0.49.0
	modernc.org/sqlite v1.62.0
)

require github.com/anishathalye/porcupine v1.3.1 // indirect

require (
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/fencedlease/lease/leasetest/linearize v0.0.0
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	modernc.org/libc v1.80.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)

replace github.com/fencedlease/lease/leasetest/linearize => ../leasetest/linearize
