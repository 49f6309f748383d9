package sdktest

import (
	"testing"

	"github.com/fencedlease/lease/blobtest"
)

// BenchmarkLease sends lease operations to the double and to Azurite, over loopback, with the same
// client, signature and requests. It reports the time of the double as a part of Azurite's time.
// The goal is at most a tenth of Azurite's time.
func BenchmarkLease(b *testing.B) {
	p := newPair(b)
	srv, err := blobtest.NewServer(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(srv.Close)
	double := map[string]float64{} // the time of an operation by the benchmark, in nanoseconds
	done := func(b *testing.B, name, to string) {
		took := float64(b.Elapsed()) / float64(b.N)
		if to == "double" {
			double[name] = took
		} else if double[name] > 0 { // else -bench does not select the double
			b.ReportMetric(double[name]/took, "x-azurite")
		}
	}
	for _, to := range []struct{ name, endpoint string }{{"double", srv.URL}, {"azurite", p.azurite}} {
		s := &side{base: to.endpoint + "/box", sas: p.sas}
		for _, o := range []op{use("create", "", "PUT", "?restype=container", ""), put(""), acquire(onBlob, "A", "60")} {
			if a, err := s.do(b.Context(), o); err != nil || a.status != 201 {
				b.Fatal(to.name, o.name, a.status, err)
			}
		}
		for _, o := range []struct {
			op     op
			status int
		}{{renew(onBlob, "A"), 200}, {acquire(onBlob, "B", "15"), 409}} {
			b.Run(o.op.verb+"/"+to.name, func(b *testing.B) {
				for b.Loop() {
					if a, err := s.do(b.Context(), o.op); err != nil || a.status != o.status {
						b.Fatal(a.status, err)
					}
				}
				done(b, o.op.verb, to.name)
			})
			b.Run(o.op.verb+"-parallel/"+to.name, func(b *testing.B) {
				b.SetParallelism(4)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if a, err := s.do(b.Context(), o.op); err != nil || a.status != o.status {
							b.Error(a.status, err)
							return
						}
					}
				})
				done(b, o.op.verb+"-parallel", to.name)
			})
		}
	}
	client.CloseIdleConnections()
}
