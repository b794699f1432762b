// Command client sends requests as clients written in Go do: by net/http, with its headers, gzip, and connections that it
// keeps. wrk, which measures the ceiling, sends none of these.
//
//	client BASE OPERATION CLUSTERS CONNECTIONS SECONDS RUN
//
// It prints one line of JSON: requests, seconds, p50_ms, p99_ms, errors.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const path = "/api/hyperfleet/v1/clusters"

// spec has the members of the specs that are seeded; tag makes it differ.
func spec(tag string) string {
	return `{"platform":{"type":"gcp","gcp":{"project":"bench-project-0001","region":"europe-west4",` +
		`"network":"bench-network","subnet":"bench-subnet"}},"release":{"channel":"stable","version":"4.20.3",` +
		`"image":"quay.io/bench/release:` + tag + `"},"networking":{"pod_cidr":"10.128.0.0/14",` +
		`"service_cidr":"172.30.0.0/16","host_prefix":23},"dns":{"base_domain":"bench.example.com"},"replicas":3}`
}

// request returns the method, path and body of one request of an operation.
func request(operation string, clusters int, tag string) (string, string, string) {
	id := fmt.Sprintf("%s/01990000-0000-7000-8000-%012d", path, 1+rand.IntN(clusters))
	switch operation {
	case "get":
		return "GET", id, ""
	case "first":
		return "GET", path + "?pageSize=20&page=1", ""
	case "patch":
		return "PATCH", id, `{"spec":` + spec(tag) + `}`
	case "post":
		return "POST", path, `{"kind":"Cluster","name":"go-` + tag + `","labels":{"owner":"team-a"},"spec":` + spec(tag) + `}`
	case "accepted":
		at := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
		condition := `{"type":"%s","status":"True","reason":"Ready","message":"Everything asked for is there and answers"}`
		var conditions []string
		for _, kind := range []string{"Available", "Applied", "Health"} {
			conditions = append(conditions, fmt.Sprintf(condition, kind))
		}
		// An adapter of its own, so that no report is older than the stored one.
		return "PUT", id + "/statuses", `{"adapter":"go-client","observed_generation":1,"observed_time":"` + at +
			`","conditions":[` + strings.Join(conditions, ",") + `]}`
	}
	fail("unknown operation " + operation)
	return "", "", ""
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, "client: "+message)
	os.Exit(1)
}

// number reads an argument.
func number(place int) int {
	value, err := strconv.Atoi(os.Args[place])
	if err != nil || value < 1 {
		fail(os.Args[place] + " is not a number")
	}
	return value
}

// send makes one request, reads its response completely, and returns whether it succeeded.
func send(client *http.Client, base, operation string, clusters int, tag string) bool {
	method, target, body := request(operation, clusters, tag)
	made, err := http.NewRequest(method, base+target, strings.NewReader(body))
	if err != nil {
		fail(err.Error())
	}
	if body != "" {
		made.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(made)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode < 300
}

func main() {
	if len(os.Args) != 7 {
		fail("usage: client BASE OPERATION CLUSTERS CONNECTIONS SECONDS RUN")
	}
	base, operation, clusters, connections, run := os.Args[1], os.Args[2], number(3), number(4), os.Args[6]
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// By default two idle connections are kept, which measures the making of connections.
	transport.MaxIdleConnsPerHost = connections
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	begin := time.Now()
	end := begin.Add(time.Duration(number(5)) * time.Second)
	var (
		workers sync.WaitGroup
		lock    sync.Mutex
		times   []float64
		errors  int
	)
	for worker := range connections {
		workers.Add(1)
		go func() {
			defer workers.Done()
			var own []float64
			failed := 0
			for count := 0; time.Now().Before(end); count++ {
				since := time.Now()
				if !send(client, base, operation, clusters, fmt.Sprintf("%s-%d-%d", run, worker, count)) {
					failed++
				}
				own = append(own, float64(time.Since(since).Microseconds())/1000)
			}
			lock.Lock()
			defer lock.Unlock()
			times, errors = append(times, own...), errors+failed
		}()
	}
	workers.Wait()
	seconds := time.Since(begin).Seconds()
	slices.Sort(times)
	at := func(part float64) float64 { return times[int(float64(len(times)-1)*part)] }
	line, err := json.Marshal(map[string]any{
		"requests": len(times), "seconds": seconds, "p50_ms": at(0.5), "p99_ms": at(0.99), "errors": errors,
	})
	if err != nil {
		fail(err.Error())
	}
	fmt.Println(string(line))
}
