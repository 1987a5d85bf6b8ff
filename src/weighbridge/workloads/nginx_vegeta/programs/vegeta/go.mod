module weighbridge-vegeta

go 1.19

require (
	github.com/HdrHistogram/hdrhistogram-go v1.1.2
	github.com/tsenart/vegeta/v12 v12.11.1
	golang.org/x/sys v0.12.0
)

require (
	github.com/influxdata/tdigest v0.0.1 // indirect
	github.com/josharian/intern v1.0.0 // indirect
	github.com/mailru/easyjson v0.7.7 // indirect
	github.com/rs/dnscache v0.0.0-20211102005908-e0241e321417 // indirect
	golang.org/x/net v0.15.0 // indirect
	golang.org/x/sync v0.3.0 // indirect
	golang.org/x/text v0.13.0 // indirect
)
