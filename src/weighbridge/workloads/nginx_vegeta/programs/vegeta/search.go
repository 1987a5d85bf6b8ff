package main

import (
	"math"
	"time"
)

const (
	// near is how close to a rate that misses the objective the rate that meets it has to be found.
	near = 0.05
	// pause lets the server end what an attack left behind.
	pause = 300 * time.Millisecond
)

// objective is a latency that a share of all planned requests have to meet; one that fails does not.
type objective struct {
	latency time.Duration
	share   float64
}

// mayMiss gives how many of the requests may miss it: the percentile is by the nearest rank.
func (o *objective) mayMiss(total uint64) uint64 {
	return total - uint64(math.Ceil(o.share*float64(total)-1e-9))
}

// judge says whether an attack with so many answers within it met it, and if not, whose limit that was.
func (o *objective) judge(a *attack, within uint64) {
	met := a.Planned-within <= o.mayMiss(a.Planned)
	a.Within, a.Met = &within, &met
	switch {
	case met:
	case max(rank(a.lags, o.share), rank(a.pulse, o.share)) > int64(o.latency)/2:
		a.Limit = "generator"
	case a.LateByQueue > 0:
		a.Limit = "connections"
	default:
		a.Limit = "server"
	}
}

// search finds the highest rate that meets an objective: doubling (or halving) first, then bisection.
type search struct {
	objective time.Duration
	share     float64
	from, to  int
}

// found is the result of a search. The rate is 0 where the objective is missed at the lowest rate that can be judged.
type found struct {
	Rate      float64 `json:"rate"`
	Missed    float64 `json:"missed"` // the lowest rate that missed it above that; 0 where none did
	Limit     string  `json:"limit"`  // generator, connections, server, or "to": no rate missed it
	Attacks   int     `json:"attacks"`
	Objective int64   `json:"objective_ns"`
	Share     float64 `json:"share"`
}

func (s search) run(settings settings, tell func(*attack)) (*found, error) {
	result := &found{Objective: int64(s.objective), Share: s.share, Limit: "to"}
	objective := &objective{s.objective, s.share}
	// meets tries a rate; one that misses is tried once more, as a moment's disturbance is not the server's limit
	meets := func(rate float64) (bool, error) {
		for try := 0; ; try++ {
			if result.Attacks > 0 {
				time.Sleep(pause)
			}
			attack, err := run(settings, rate, objective)
			if err != nil {
				return false, err
			}
			result.Attacks++
			tell(attack)
			if *attack.Met {
				result.Rate = rate
				return true, nil
			} else if try > 0 {
				result.Missed, result.Limit = rate, attack.Limit
				return false, nil
			}
		}
	}
	rate, least := float64(s.from), math.Max(1, math.Ceil(1/(1-s.share)/settings.duration.Seconds()))
	for result.Missed == 0 && result.Rate < float64(s.to) {
		if _, err := meets(rate); err != nil {
			return nil, err
		}
		rate = math.Min(rate*2, float64(s.to))
	}
	for rate = result.Missed / 2; result.Rate == 0 && rate >= least; rate /= 2 {
		if _, err := meets(math.Round(rate)); err != nil {
			return nil, err
		}
	}
	for result.Rate > 0 && result.Missed > result.Rate*(1+near) && result.Missed > result.Rate+1 {
		if _, err := meets(math.Round((result.Rate + result.Missed) / 2)); err != nil {
			return nil, err
		}
	}
	return result, nil
}
