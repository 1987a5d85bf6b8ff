package main

import (
	"errors"
	"math"
	"net"
	"net/http"
	"runtime"
	"sort"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	vegeta "github.com/tsenart/vegeta/v12/lib"
)

const (
	longest   = time.Hour // that the histogram tells apart
	mostTexts = 10
)

// settings are the same for every attack of a search.
type settings struct {
	url         string
	duration    time.Duration
	timeout     time.Duration
	connections int
}

// attack is what came of one attack. Times are in nanoseconds.
//
// Latency is from the planned send to the whole answer. It is that of the requests that were answered with success, and
// of those that timed out or never were sent, which waited at least so long; not of those that failed at once.
type attack struct {
	Rate     float64           `json:"rate"`
	Planned  uint64            `json:"planned"`
	Sent     uint64            `json:"sent"`
	Answered uint64            `json:"answered"`
	Seconds  float64           `json:"seconds"` // from the first planned send to the last answer, or as planned
	Errors   map[string]uint64 `json:"errors"`
	Said     map[string]uint64 `json:"said"`

	Counted int     `json:"counted"`
	Mean    float64 `json:"mean_ns"`
	P50     int64   `json:"p50_ns"`
	P95     int64   `json:"p95_ns"`
	P99     int64   `json:"p99_ns"`
	Max     int64   `json:"max_ns"`

	LateByQueue   uint64 `json:"late_by_queue"`  // sent more than 1 ms late, as every connection was in use
	LateByItself  uint64 `json:"late_by_itself"` // sent more than 1 ms late by the generator
	LagP50        int64  `json:"lag_p50_ns"`     // of the generator itself
	LagP99        int64  `json:"lag_p99_ns"`
	LagMax        int64  `json:"lag_max_ns"`
	Behind        int64  `json:"behind_ns"` // its lag at the last request
	PulseP50      int64  `json:"pulse_p50_ns"`
	PulseP99      int64  `json:"pulse_p99_ns"`
	UnsentByQueue bool   `json:"unsent_by_queue"`

	CPU  float64 `json:"cpu_s"` // of the generator
	CPUs int     `json:"cpus"`  // that it may use

	Within *uint64 `json:"within,omitempty"` // answered within the objective
	Met    *bool   `json:"met,omitempty"`
	Limit  string  `json:"limit,omitempty"` // what it was that missed the objective

	Histogram string `json:"histogram,omitempty"`

	latencies []int64
	lags      []int64
	pulse     []int64
}

// run attacks once. With an objective it ends as soon as that cannot be met any more.
func run(settings settings, rate float64, objective *objective) (*attack, error) {
	timer, err := newTimer()
	if err != nil {
		return nil, err
	}
	defer timer.close()
	pulse, err := newPulse()
	if err != nil {
		return nil, err
	}
	client := newClient(settings)
	defer client.CloseIdleConnections()

	total := uint64(math.Max(1, math.Round(rate*settings.duration.Seconds())))
	plan := &plan{
		rate: rate, total: total, last: settings.duration + settings.timeout, connections: uint64(settings.connections),
		timer: timer, enough: func() bool { return false }, over: pulse.halt, lag: make([]int64, 0, min(total, 1<<20)),
	}
	var within uint64 // the objective
	var missed atomic.Uint64
	if objective != nil {
		plan.enough = func() bool { return missed.Load() > objective.mayMiss(total) }
	}
	attacker := vegeta.NewAttacker(
		vegeta.Workers(min(vegeta.DefaultWorkers, plan.connections)), vegeta.MaxWorkers(plan.connections),
		vegeta.MaxBody(0), vegeta.Client(client),
	)
	targeter := vegeta.NewStaticTargeter(vegeta.Target{Method: http.MethodGet, URL: settings.url})
	found := &attack{Rate: rate, Planned: total, Errors: map[string]uint64{}, Said: map[string]uint64{}}
	var own error
	end, cpu := time.Time{}, cpuSeconds()
	for result := range attacker.Attack(targeter, plan, 0, "") {
		plan.finished.Add(1)
		ended := result.Timestamp.Add(result.Latency)
		took := ended.Sub(plan.due(result.Seq))
		kind, err := kindOf(result)
		if err != nil {
			own = err
			attacker.Stop()
		} else if kind == "" && ended.After(end) {
			end = ended
		}
		found.add(kind, result.Error, took)
		if objective != nil && kind == "" && took <= objective.latency {
			within++
		} else {
			missed.Add(1)
		}
	}
	found.pulse = sorted(pulse.end())
	if own != nil {
		return nil, own
	}
	found.CPU, found.CPUs = cpuSeconds()-cpu, runtime.GOMAXPROCS(0)
	found.conclude(plan, settings, end)
	if objective != nil {
		objective.judge(found, within)
	}
	return found, nil
}

func newClient(settings settings) *http.Client {
	dialer := &net.Dialer{KeepAlive: 30 * time.Second}
	return &http.Client{
		Timeout: settings.timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableCompression: true,
			MaxIdleConns: 0, MaxIdleConnsPerHost: settings.connections, MaxConnsPerHost: settings.connections,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (a *attack) add(kind, text string, took time.Duration) {
	if kind == "" {
		a.Answered++
	} else {
		a.Errors[kind]++
		if _, known := a.Said[said(text)]; known || len(a.Said) < mostTexts {
			a.Said[said(text)]++
		}
	}
	if kind == "" || kind == "timeout" {
		a.latencies = append(a.latencies, int64(took))
	}
}

// conclude counts what was planned and never sent, unless the attack ended early, and what the latencies are.
func (a *attack) conclude(plan *plan, settings settings, end time.Time) {
	a.Sent, a.LateByQueue, a.LateByItself = plan.sent, plan.lateByQueue, plan.lateByItself
	a.Behind, a.UnsentByQueue = int64(plan.behind), plan.unsentByQueue
	for _, kind := range kinds {
		a.Errors[kind] += 0
	}
	a.Seconds = math.Max(settings.duration.Seconds(), end.Sub(plan.start).Seconds())
	if plan.enough() {
		a.Seconds = time.Since(plan.start).Seconds()
	} else {
		now := time.Now()
		for number := a.Sent; number < a.Planned; number++ {
			a.Errors["unsent"]++
			a.latencies = append(a.latencies, int64(now.Sub(plan.due(number))))
		}
	}
	a.lags, a.latencies = sorted(plan.lag), sorted(a.latencies)
	a.LagP50, a.LagP99, a.LagMax = rank(a.lags, 0.5), rank(a.lags, 0.99), rank(a.lags, 1)
	a.PulseP50, a.PulseP99 = rank(a.pulse, 0.5), rank(a.pulse, 0.99)
	if a.PulseP50 > int64(late) { // it does not get to its work: no connection was free because of that
		a.LateByItself, a.LateByQueue, a.UnsentByQueue = a.LateByItself+a.LateByQueue, 0, false
	}
	a.Counted = len(a.latencies)
	a.P50, a.P95, a.P99, a.Max = rank(a.latencies, 0.5), rank(a.latencies, 0.95), rank(a.latencies, 0.99), rank(a.latencies, 1)
	for _, each := range a.latencies {
		a.Mean += float64(each) / float64(len(a.latencies))
	}
}

// encode adds the histogram, as the libraries of HdrHistogram exchange it (version 2, compressed, base64).
func (a *attack) encode() error {
	histogram := hdrhistogram.New(1, int64(longest), 3)
	for _, each := range a.latencies {
		if err := histogram.RecordValue(max(1, min(each, int64(longest)))); err != nil {
			return err
		}
	}
	encoded, err := histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if len(encoded) == 0 && err == nil {
		err = errors.New("the histogram cannot be encoded")
	}
	a.Histogram = string(encoded)
	return err
}

func sorted(values []int64) []int64 {
	sort.Slice(values, func(i, j int) bool { return values[i] < values[j] })
	return values
}

// rank gives the value at or below which a share of the sorted values are (nearest rank), 0 where there is none.
func rank(sorted []int64, share float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int64(math.Ceil(share*float64(len(sorted))-1e-9))-1)]
}

// cpuSeconds is the CPU time of this process so far.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

type number interface{ ~int64 | ~uint64 }

func min[N number](a, b N) N {
	if a < b {
		return a
	}
	return b
}

func max[N number](a, b N) N {
	if a > b {
		return a
	}
	return b
}
