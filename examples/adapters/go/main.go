// An adapter to start from: copy this file, and put your work into reconcile. It needs only Go's standard library.
//
//	go run main.go clusters nodepools        the kinds that it works on, by their plurals
//
//	API         URL of the service (http://127.0.0.1:8000)
//	NAME        the adapter's name, as in required_adapters (starter)
//	TOKEN_FILE  file with a token, if the service asks for one; it is read for each request
//	WORKERS     how many resources are worked on at the same time (8)
//	LEASE       lease of the API, for which copies of the adapter compete: its holder works (NAME); none: each copy works
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	root     = "/api/hyperfleet/v1"
	workTime = 2 * time.Second
	// All resources are worked on this often, for what no event shows.
	sweepTime = 10 * time.Minute
	// A watch shows something every 15 seconds.
	silenceMax = 45 * time.Second
	// How long the other copies wait for one that has crashed, and for how much of it this copy may work after a renewal.
	leaseTime, heldTime = 15 * time.Second, 12 * time.Second
)

var (
	// With the path of the API or without.
	api  = strings.TrimSuffix(strings.TrimRight(setting("API", "http://127.0.0.1:8000"), "/"), root)
	name = setting("NAME", "starter")

	lease = setting("LEASE", name)

	errPositionGone = errors.New("the position is too old")
)

// Resource is what a reconciliation needs of a resource.
type Resource struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Href        string         `json:"href"`
	Generation  int64          `json:"generation"`
	DeletedTime *time.Time     `json:"deleted_time"`
	Spec        map[string]any `json:"spec"`
}

// Condition is a part of a report. Only Available decides whether a resource is reconciled, or Finalized when it is deleted.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// reconcile brings one step of the work on a resource about, and returns its conditions and after what time to call it
// again; 0 if only a change calls for it.
//
// It is called for every new generation, after errors, and every ten minutes: compare what is there with the spec, and
// change only the difference. begun says whether an earlier call has reported on this generation. An error is reported
// as Available=False and Health=False, and retried after 1 s, then at growing intervals. ctx ends when the program is asked to end.
//
// This one creates nothing: it fails if spec.demo.fail is true.
func reconcile(_ context.Context, resource Resource, begun bool) ([]Condition, time.Duration, error) {
	demo, _ := resource.Spec["demo"].(map[string]any)
	fails := demo["fail"] == true
	switch {
	case resource.DeletedTime != nil && !begun:
		return append(conditions(false, false, "Removing", "cleaning up"), finalized(false)), workTime, nil
	case resource.DeletedTime != nil && fails:
		return append(failed("DemoFailure", "spec.demo.fail is true"), finalized(false)), 0, nil
	case resource.DeletedTime != nil:
		return append(conditions(false, false, "Removed", "nothing is left"), finalized(true)), 0, nil
	case !begun:
		return conditions(true, false, "Working", "about to create everything"), workTime, nil
	case fails:
		return failed("DemoFailure", "spec.demo.fail is true"), 0, nil
	default:
		return conditions(true, true, "Done", "everything is there"), 0, nil
	}
}

func conditions(applied, available bool, reason, message string) []Condition {
	return []Condition{
		{"Applied", status(applied), reason, message},
		{"Available", status(available), reason, message},
		{"Health", status(true), "Healthy", "the adapter works"},
	}
}

// failed says that the adapter cannot do its work.
func failed(reason, message string) []Condition {
	return []Condition{
		{"Applied", "False", reason, message},
		{"Available", "False", reason, message},
		{"Health", "False", reason, message},
	}
}

// finalized says whether nothing is left of a deleted resource.
func finalized(is bool) Condition {
	return Condition{"Finalized", status(is), "Finalized", ""}
}

func status(is bool) string {
	if is {
		return "True"
	}
	return "False"
}

// queue holds resources to work on: at most one worker has a resource, and a change meanwhile leads to one more run.
type queue struct {
	ctx     context.Context
	mutex   sync.Mutex
	waiting map[string]bool // true: again after the present run
	ready   chan string
}

func (q *queue) add(href string) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if _, there := q.waiting[href]; there {
		q.waiting[href] = true
		return
	}
	q.waiting[href] = false
	go func() {
		select {
		case q.ready <- href:
		case <-q.ctx.Done():
		}
	}()
}

func (q *queue) done(href string, again time.Duration) {
	q.mutex.Lock()
	changed := q.waiting[href]
	delete(q.waiting, href)
	q.mutex.Unlock()
	switch {
	case changed:
		q.add(href)
	case again > 0:
		time.AfterFunc(again, func() { q.add(href) })
	}
}

// work reconciles resources until ctx ends.
func (q *queue) work(ctx context.Context, failures *sync.Map) {
	for {
		select {
		case <-ctx.Done():
			return
		case href := <-q.ready:
			again, err := workOn(ctx, href)
			if err == nil {
				failures.Delete(href)
			} else if ctx.Err() == nil {
				before, _ := failures.LoadOrStore(href, 500*time.Millisecond)
				again = min(2*before.(time.Duration), 5*time.Minute)
				failures.Store(href, again)
				log.Printf("%s: %v: again in %v", href, err, again)
			}
			q.done(href, again)
		}
	}
}

// workOn reports on a resource.
func workOn(ctx context.Context, href string) (time.Duration, error) {
	var resource Resource
	var stored struct {
		Items []struct {
			Adapter    string `json:"adapter"`
			Generation int64  `json:"observed_generation"`
		} `json:"items"`
	}
	found, err := call(ctx, http.MethodGet, href, nil, &resource)
	if err != nil || !found {
		return 0, err
	}
	found, err = call(ctx, http.MethodGet, href+"/statuses?size=100", nil, &stored)
	if err != nil || !found {
		return 0, err
	}
	begun := false
	for _, report := range stored.Items {
		begun = begun || report.Adapter == name && report.Generation == resource.Generation
	}
	observed, again, failure := reconcile(ctx, resource, begun)
	if failure != nil {
		observed = failed("Error", failure.Error())
		if resource.DeletedTime != nil {
			observed = append(observed, finalized(false))
		}
	}
	_, err = call(ctx, http.MethodPut, href+"/statuses", map[string]any{
		"adapter":             name,
		"observed_generation": resource.Generation,
		"observed_time":       time.Now().UTC(),
		"conditions":          observed,
	}, nil)
	return again, errors.Join(failure, err)
}

// call sends a request and reads the answer into result. It returns false if the resource is gone.
func call(ctx context.Context, method, path string, body, result any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	response, err := send(ctx, method, path, body)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	var problem struct{ Code, Detail string }
	switch {
	case response.StatusCode < 300:
		if result == nil {
			return true, nil
		}
		return true, json.Unmarshal(text, result)
	case json.Unmarshal(text, &problem) == nil && response.StatusCode == http.StatusNotFound && problem.Code != "HYPERFLEET-NTF-000":
		return false, nil // with the other code of 404 the path would be wrong
	default:
		return false, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, problem.Detail)
	}
}

func send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, api+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if file := os.Getenv("TOKEN_FILE"); file != "" {
		token, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return http.DefaultClient.Do(request)
}

// kind finds the resources of a kind that need work.
type kind struct {
	plural      string
	queue       *queue
	position    string // where the watch continues; empty: with everything
	generations map[string]int64
	swept       time.Time
}

// find queues each resource when its generation changes, and all of them now and then, until ctx ends.
func (k *kind) find(ctx context.Context) {
	pause := time.Second
	for ctx.Err() == nil {
		if time.Since(k.swept) > sweepTime {
			k.position, k.generations, k.swept = "", map[string]int64{}, time.Now()
		}
		began := time.Now()
		err := k.watch(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if errors.Is(err, errPositionGone) {
			k.position, k.generations = "", map[string]int64{}
		}
		if time.Since(began) > time.Minute {
			pause = time.Second
		}
		log.Printf("%s: %v: watching again in %v", k.plural, err, pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 30*time.Second)
	}
}

// watch follows the events of the kind until the next sweep, or an error.
func (k *kind) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(silenceMax, cancel)
	defer silence.Stop()
	query := url.Values{"watch": {"true"}, "includeDeleted": {"true"}, "fields": {"href,generation"}}
	if k.position == "" {
		query.Set("initial", "true")
	} else {
		query.Set("position", k.position)
	}
	response, err := send(ctx, http.MethodGet, root+"/"+k.plural+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusGone {
		return errPositionGone
	}
	if response.StatusCode != http.StatusOK {
		var problem struct{ Detail string }
		_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&problem)
		return fmt.Errorf("%s: %s", response.Status, problem.Detail)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		silence.Reset(silenceMax)
		if err := k.see(lines.Bytes()); err != nil {
			return err
		}
		if k.position != "" && time.Since(k.swept) > sweepTime {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// see takes in one event.
func (k *kind) see(line []byte) error {
	var event struct {
		Type     string
		Position string
		Object   struct {
			Href       string
			Generation int64
			Status     int
			Detail     string
		}
	}
	// The status of a resource is an object; only errors have a number.
	if err := json.Unmarshal(line, &event); err != nil {
		return err
	}
	object := event.Object
	switch event.Type {
	case "ERROR":
		if object.Status == http.StatusGone {
			return errPositionGone
		}
		return errors.New(object.Detail)
	case "DELETED":
		delete(k.generations, object.Href)
	case "ADDED", "MODIFIED":
		if k.generations[object.Href] != object.Generation {
			k.generations[object.Href] = object.Generation
			k.queue.add(object.Href)
		}
	}
	if event.Position != "" {
		k.position = event.Position
	}
	return nil
}

// copyOf is one of several copies of this program, of which the holder of the lease works.
type copyOf struct{ holder string }

// lead calls work while this copy holds the lease, until ctx ends. The context of work ends with the lease.
func (c copyOf) lead(ctx context.Context, work func(context.Context)) {
	said := ""
	for ctx.Err() == nil {
		until, err := c.ask(ctx)
		if !until.IsZero() {
			log.Printf("lease %s acquired", lease)
			c.hold(ctx, until, work)
			said = ""
			continue
		}
		problem := "another copy holds it"
		if err != nil {
			problem = err.Error()
		}
		if problem != said && ctx.Err() == nil {
			log.Printf("lease %s: %s: waiting", lease, problem)
			said = problem
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// hold calls work while the lease can be renewed, and releases the lease when ctx ends.
func (c copyOf) hold(ctx context.Context, until time.Time, work func(context.Context)) {
	leading, stop := context.WithCancel(ctx)
	end := time.AfterFunc(time.Until(until), stop)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		for pause := leaseTime / 3; ; {
			select {
			case <-leading.Done():
				return
			case <-time.After(pause):
			}
			until, err := c.ask(leading)
			switch {
			case !until.IsZero():
				end.Reset(time.Until(until))
				pause = leaseTime / 3
			case err != nil:
				pause = time.Second
			default:
				stop()
			}
		}
	}()
	work(leading)
	stop()
	<-renewed
	if ctx.Err() == nil {
		log.Printf("lease %s lost", lease)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	query := url.Values{"holder": {c.holder}}
	response, err := send(ctx, http.MethodDelete, leasePath()+"?"+query.Encode(), nil)
	if err != nil {
		log.Printf("lease %s: %v: it will expire", lease, err)
		return
	}
	response.Body.Close()
}

// ask acquires or renews the lease. It returns until when this copy may work; a zero time if another copy holds the lease.
func (c copyOf) ask(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, heldTime/3)
	defer cancel()
	asked := time.Now()
	body := map[string]any{"holder": c.holder, "duration_seconds": leaseTime / time.Second}
	response, err := send(ctx, http.MethodPut, leasePath(), body)
	if err != nil {
		return time.Time{}, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return asked.Add(heldTime), nil
	case http.StatusConflict:
		return time.Time{}, nil
	}
	var problem struct{ Detail string }
	_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&problem)
	return time.Time{}, fmt.Errorf("%s: %s", response.Status, problem.Detail)
}

func leasePath() string { return root + "/leases/" + url.PathEscape(lease) }

// holderName is a name that no other copy has.
func holderName() string {
	host, _ := os.Hostname()
	random := make([]byte, 8)
	_, _ = rand.Read(random)
	return fmt.Sprintf("%s-%x", host, random)
}

func setting(variable, otherwise string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return otherwise
}

func main() {
	workers, err := strconv.Atoi(setting("WORKERS", "8"))
	if len(os.Args) < 2 || err != nil || workers < 1 {
		log.Fatal("usage: API=http://127.0.0.1:8000 NAME=starter WORKERS=8 adapter PLURAL…")
	}
	log.Printf("%s: working on %s of %s", name, strings.Join(os.Args[1:], ", "), api)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if lease == "none" {
		work(ctx, os.Args[1:], workers)
		return
	}
	copyOf{holderName()}.lead(ctx, func(ctx context.Context) { work(ctx, os.Args[1:], workers) })
}

// work finds and reconciles resources until ctx ends.
func work(ctx context.Context, plurals []string, workers int) {
	var running sync.WaitGroup
	start := func(run func()) {
		running.Add(1)
		go func() { defer running.Done(); run() }()
	}
	queue, failures := &queue{ctx: ctx, waiting: map[string]bool{}, ready: make(chan string)}, &sync.Map{}
	for _, plural := range plurals {
		kind := &kind{plural: plural, queue: queue}
		start(func() { kind.find(ctx) })
	}
	for range workers {
		start(func() { queue.work(ctx, failures) })
	}
	running.Wait()
}
