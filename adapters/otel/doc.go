// Package otel reports leases as metrics and spans of OpenTelemetry. It imports only the API of
// OpenTelemetry, so the program chooses the SDK and the exporter.
//
//	trace, err := otel.Trace(provider, nil)
//	l, err := store.Lease("indexer/leader", &session.Options{Trace: trace})
//
// These are the instruments. An attribute in brackets is set only with the option [Options.Names]:
//
//	lease.held                   up-down counter  {lease}       leases that are held: 0 or 1 for each name  [lease.name]
//	lease.renewals               counter          {renewal}     answers to renewals                         lease.outcome [lease.name]
//	lease.renewal.margin         histogram        1             what was left of the lease at each answer, from 0 to 1  [lease.name]
//	lease.acquisition.duration   histogram        s             from the first attempt to the last  lease.outcome [lease.name]
//	lease.terms                  counter          {term}        ends of terms                               lease.reason [lease.name]
//	lease.breaks                 counter          {break}       breaks that a holder has noticed            [lease.name]
//	lease.shards.held            up-down counter  {shard}       shards that this process works on           lease.prefix
//	lease.shards.idle            gauge            {shard}       shards of the group that no process takes   lease.prefix
//	lease.shards.failures        counter          {failure}     errors of a group of shards                 lease.prefix
//
// The attribute lease.outcome is "granted", "refused" or, if no answer came, "unknown". The attribute
// lease.reason says why a term has ended. If the holder has released the lease, the reason is "released". If
// the store did not answer and the work stopped before the lease expired, the reason is "stop-window". In all
// other cases, the lease was lost, and the reason is the name of a [lease.Code], such as "broken" or
// "expired".
//
// The margin is recorded for each granted renewal of a finite lease. When the answer to the renewal arrives,
// the holder can still rely on its previous grant for some time. The margin is the ratio of this remaining
// time to the duration of the lease. For example, if 12 s of a lease of 30 s are left, the margin is 0.4. If
// the answer came too late, the margin is 0.
//
// With the option Names, the instrument lease.held has the value 0 for a lease as soon as this process first
// tries to acquire that lease. Without the option Names, the instrument has the value 0 from the beginning.
// All instruments have the scope github.com/fencedlease/lease/adapters/otel.
//
// The folder alerts contains four alert rules for Prometheus and a dashboard for Grafana.
package otel
