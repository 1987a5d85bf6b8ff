// weighbridge-vegeta sends GET requests to one URL at a constant rate, with vegeta's library, and tells their latency
// from the moment at which each was planned to be sent: a stall of the server is not hidden by requests that wait to
// be sent, as it is by every generator that waits for an answer first (coordinated omission).
//
// With -rate it attacks once; with -objective it searches the highest rate that meets it. What it finds is printed as
// lines of JSON, one for each attack, and for a search one more with its result. It ends with code 0 whatever the
// server did, and with another and a sentence on standard error where it could not do its own part.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

func main() {
	var settings settings
	var search search
	flag.StringVar(&settings.url, "url", "", "what to get")
	flag.DurationVar(&settings.duration, "duration", 10*time.Second, "how long each attack sends")
	flag.DurationVar(&settings.timeout, "timeout", 2*time.Second, "how long a request may take once it is sent")
	flag.IntVar(&settings.connections, "connections", 10000, "the most connections, each with one request at a time")
	rate := flag.Int("rate", 0, "requests/s; without it, a search")
	flag.DurationVar(&search.objective, "objective", 0, "the latency that a searched rate has to meet")
	flag.Float64Var(&search.share, "share", 0.99, "the share of the requests that have to meet it")
	flag.IntVar(&search.from, "from", 200, "the first rate that a search tries")
	flag.IntVar(&search.to, "to", 100000, "the highest rate that a search tries")
	flag.Parse()
	debug.SetGCPercent(400) // less of the CPU for collecting what each request leaves behind

	if settings.url == "" || flag.NArg() > 0 || settings.connections < 1 || (*rate < 1) == (search.objective <= 0) {
		fail("needs -url and either -rate or -objective, and takes no other arguments")
	}
	if *rate > 0 {
		attack, err := run(settings, float64(*rate), nil)
		must(err)
		must(attack.encode())
		show(map[string]any{"attack": attack})
		return
	}
	result, err := search.run(settings, func(attack *attack) { show(map[string]any{"attack": attack}) })
	must(err)
	show(map[string]any{"search": result})
}

func show(line map[string]any) {
	text, err := json.Marshal(line)
	must(err)
	_, err = fmt.Printf("%s\n", text)
	must(err)
}

func must(err error) {
	if err != nil {
		fail(err.Error())
	}
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, "weighbridge-vegeta:", why)
	os.Exit(1)
}
