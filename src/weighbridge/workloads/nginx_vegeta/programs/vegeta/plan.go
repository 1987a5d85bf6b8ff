package main

import (
	"sync/atomic"
	"time"
)

const (
	// lead is the time from the start of an attack to its first request: its workers are there by then.
	lead = 5 * time.Millisecond
	// late is how much later than planned a request may be sent without being counted as late.
	late = time.Millisecond
)

// plan says when each request is to be sent, and why it was not. It is the Pacer of an attack.
//
// A request is sent late because every connection was in use (the server's doing), or because the generator was not
// there in time. What has been made late stays so until the plan is met again, by whichever of the two it was.
type plan struct {
	rate        float64       // requests/s
	total       uint64        // requests
	last        time.Duration // after which nothing more is sent, from the first request on
	connections uint64
	timer       *timer
	enough      func() bool // whether the attack may end early
	over        func()      // called when nothing more is sent

	start    time.Time     // when the first request is due
	finished atomic.Uint64 // requests that have ended

	sent          uint64
	queued        bool // whether requests have waited for a connection since the plan was last met
	lateByQueue   uint64
	lateByItself  uint64
	lag           []int64       // ns by which each request was late by the generator itself
	behind        time.Duration // by which the last was
	unsentByQueue bool
}

// due gives the moment at which a request is planned to be sent; the first has number 0.
func (p *plan) due(number uint64) time.Time {
	return p.start.Add(time.Duration(float64(number) * 1e9 / p.rate))
}

// Pace waits until the next request is due. It never has vegeta wait, whose sleep is not exact enough.
func (p *plan) Pace(_ time.Duration, number uint64) (time.Duration, bool) {
	now := time.Now()
	if number == 0 {
		p.start = now.Add(lead)
	}
	p.queued = p.queued || number-p.finished.Load() >= p.connections
	p.unsentByQueue = p.queued
	p.sent = number
	if number >= p.total || now.Sub(p.start) > p.last || p.enough() {
		p.over()
		return 0, true
	}
	due := p.due(number)
	if wait := due.Sub(now); wait > 0 {
		p.queued = false
		p.timer.sleep(wait)
		now = time.Now()
	}
	lag := now.Sub(due)
	p.behind = lag
	switch {
	case p.queued:
		p.behind = 0
		if lag > late {
			p.lateByQueue++
		}
	case lag > late:
		p.lateByItself++
	}
	p.lag = append(p.lag, int64(p.behind))
	return 0, false
}

// Rate is the planned one.
func (p *plan) Rate(time.Duration) float64 { return p.rate }
