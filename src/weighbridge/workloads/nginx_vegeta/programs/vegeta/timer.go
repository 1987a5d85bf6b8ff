package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timer wakes one goroutine as exactly as the kernel can. Go's own timers are served by epoll_wait, whose time-out is
// in whole milliseconds, so that time.Sleep wakes up to 1 ms late on an idle process; a timerfd wakes epoll_wait itself.
type timer struct {
	fd   int
	file *os.File
}

func newTimer() (*timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("there is no timer: %w", err)
	}
	return &timer{fd, os.NewFile(uintptr(fd), "timer")}, nil
}

// sleep returns after a time, which must be positive. Where the timer fails it sleeps as Go does.
func (t *timer) sleep(wait time.Duration) {
	var expirations [8]byte
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(wait))}
	if unix.TimerfdSettime(t.fd, 0, &at, nil) != nil {
		time.Sleep(wait)
	} else if _, err := t.file.Read(expirations[:]); err != nil {
		time.Sleep(wait)
	}
}

func (t *timer) close() { _ = t.file.Close() }
