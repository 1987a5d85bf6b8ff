package main

import (
	"sync"
	"time"
)

// beat is the time between two beats of a pulse.
const beat = 5 * time.Millisecond

// pulse tells how late the generator is by itself while it is at work: a goroutine that has nothing to do but to wake
// in time. Where requests wait for a connection because the generator does not get to read the answers, and not
// because there are none, it shows.
type pulse struct {
	once sync.Once
	stop chan struct{}
	lags chan []int64
}

func newPulse() (*pulse, error) {
	timer, err := newTimer()
	if err != nil {
		return nil, err
	}
	p := &pulse{stop: make(chan struct{}), lags: make(chan []int64, 1)}
	go func() {
		defer timer.close()
		var lags []int64
		for {
			due := time.Now().Add(beat)
			timer.sleep(beat)
			lags = append(lags, int64(time.Since(due)))
			select {
			case <-p.stop:
				p.lags <- lags
				return
			default:
			}
		}
	}()
	return p, nil
}

// halt ends it once nothing more is to be sent; what is still waited for then is not its work.
func (p *pulse) halt() { p.once.Do(func() { close(p.stop) }) }

// end gives by how many nanoseconds each beat was late.
func (p *pulse) end() []int64 {
	p.halt()
	return <-p.lags
}
