package main

import (
	"fmt"
	"regexp"
	"strings"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// kinds are those of the requests that were not answered with success.
var kinds = []string{"connect", "read", "write", "timeout", "status", "unsent"}

// own are the failures of the generator's side, which say nothing about the server, with what they mean.
var own = map[string]string{
	"too many open files":             "it may not have as many open files as it needs connections",
	"cannot assign requested address": "there are no more local ports for its connections",
	"no buffer space available":       "the kernel has no more memory for its connections",
}

var (
	address = regexp.MustCompile(`[0-9.]+:[0-9]+(->[0-9.]+:[0-9]+)?`)
	timeout = regexp.MustCompile(`Client\.Timeout|deadline exceeded|i/o timeout|timeout awaiting|connection timed out`)
)

// kindOf gives the kind of a request's failure, or nothing for one that was answered. An error is the generator's own.
func kindOf(result *vegeta.Result) (string, error) {
	text := result.Error
	if text == "" {
		return "", nil
	}
	for part, meaning := range own {
		if strings.Contains(text, part) {
			return "", fmt.Errorf("%s (%s)", meaning, said(text))
		}
	}
	switch {
	case result.Code != 0:
		return "status", nil
	case timeout.MatchString(text):
		return "timeout", nil
	case strings.Contains(text, "dial tcp"):
		return "connect", nil
	case strings.Contains(text, "write tcp") || strings.Contains(text, "broken pipe"):
		return "write", nil
	}
	return "read", nil
}

// said is an error's text without what differs from request to request.
func said(text string) string { return address.ReplaceAllString(text, "ADDRESS") }
