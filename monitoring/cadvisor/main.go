// Cadvisor serves, for Prometheus, what the kernel counts for each control group and container of this machine.
//
// cAdvisor has no Debian package, and its own program has many flags and pages that nobody here needs: this one uses
// its library, reads the counters when it is asked and not in between, and listens on loopback only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/cadvisor/cache/memory"
	"github.com/google/cadvisor/container"
	"github.com/google/cadvisor/container/docker"
	v2 "github.com/google/cadvisor/info/v2"
	"github.com/google/cadvisor/manager"
	"github.com/google/cadvisor/metrics"
	"github.com/google/cadvisor/utils/sysfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// Readings younger than this are given again, so that two scrapers cost no more than one.
	youngest = 500 * time.Millisecond
	// Between scrapes the library reads by itself this often: it only has to notice that nobody asks.
	unasked = time.Minute
)

// What the dashboards draw. Sizes of file systems, processes and sockets are left out: they cost most of all.
var drawn = container.MetricSet{
	container.CpuUsageMetrics:     {},
	container.MemoryUsageMetrics:  {},
	container.NetworkUsageMetrics: {},
	container.DiskIOMetrics:       {},
	container.OOMMetrics:          {},
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9101", "loopback address and port to serve /metrics on")
	klog.InitFlags(nil)
	flag.Parse()
	if err := serve(*listen); err != nil {
		fmt.Fprintln(os.Stderr, "cadvisor:", err)
		os.Exit(1)
	}
}

// serve answers scrapes at the address until the process is asked to end.
func serve(listen string) error {
	if err := mustBeLoopback(listen); err != nil {
		return err
	}
	groups, err := watch()
	if err != nil {
		return err
	}
	defer groups.Stop()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	pages := http.NewServeMux()
	pages.Handle("/metrics", promhttp.HandlerFor(registry(groups), promhttp.HandlerOpts{}))
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second}
	ended, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ended, func() { server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func mustBeLoopback(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	if address := net.ParseIP(host); address == nil || !address.IsLoopback() {
		return fmt.Errorf("%s is no loopback address: nobody is asked for a password here", host)
	}
	return nil
}

// knowDocker gives containers their names and networks, where there is an engine: to look for one that is not there
// takes the library five seconds.
func knowDocker() error {
	if path, local := strings.CutPrefix(*docker.ArgDockerEndpoint, "unix://"); local {
		if _, err := os.Stat(path); err != nil {
			return nil
		}
	}
	return container.RegisterPlugin("docker", docker.NewPlugin())
}

// watch begins to follow the control groups as they come and go.
func watch() (manager.Manager, error) {
	if err := knowDocker(); err != nil {
		return nil, err
	}
	every, dynamic := unasked, false
	*manager.HousekeepingInterval = unasked
	housekeeping := manager.HousekeepingConfig{Interval: &every, AllowDynamic: &dynamic}
	all := []string{""} // every path begins so
	groups, err := manager.New(
		memory.New(2*unasked, nil), sysfs.NewRealSysFs(), housekeeping, drawn, http.DefaultClient, all, nil, "", 0,
	)
	if err != nil {
		return nil, err
	}
	return groups, groups.Start()
}

func registry(groups manager.Manager) *prometheus.Registry {
	age := youngest
	asked := v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: true, MaxAge: &age}
	labels := metrics.BaseContainerLabels(nil)
	made := prometheus.NewRegistry()
	made.MustRegister(metrics.NewPrometheusCollector(groups, labels, drawn, clock.RealClock{}, asked))
	return made
}
