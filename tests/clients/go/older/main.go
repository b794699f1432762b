// Code as clients of the older service have it: its types and signatures, with a client that oapi-codegen makes from the
// plain document. Every statement must compile; what it gets is checked, too.
//
//	older HOST_URL
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"hyperfleet.example/clients/plain"
)

// item is what a poller of the older service keeps of a resource.
type item struct {
	id, href, kind, owner string
	generation            int32
	labels                map[string]string
	since                 time.Time
}

func main() {
	client, err := plain.NewClientWithResponses(os.Args[1])
	must(err)
	ctx := context.Background()

	// Create with a kind in a variable, and the members that the service ignores.
	kind, ignored := "Cluster", "none"
	var spec map[string]interface{} = map[string]interface{}{"region": "eu"}
	labels := map[string]string{"shard": "7"}
	request := plain.ClusterCreateRequest{Id: &ignored, Href: &ignored, Kind: kind, Name: "older", Labels: &labels, Spec: spec}
	created, err := client.PostClusterWithResponse(ctx, request)
	must(err)
	var cluster *plain.Cluster = created.JSON201
	spec = cluster.Spec
	id := *cluster.Id
	pool := plain.NodePoolCreateRequest{Kind: "NodePool", Name: "workers", Spec: spec}
	pooled, err := client.CreateNodePoolWithResponse(ctx, id, pool)
	must(err)
	var status int = http.StatusConflict
	again, err := client.PostClusterWithResponse(ctx, request)
	must(err)
	if again.ApplicationproblemJSON409.Status != status {
		fail("a second create", again.StatusCode())
	}

	// Poll.
	search, page, size := plain.QueryParamsSearch("labels.shard='7'"), plain.QueryParamsPage(1), plain.QueryParamsSize(10)
	clusters, err := client.GetClustersWithResponse(ctx, &plain.GetClustersParams{Search: &search, Page: &page, Size: &size})
	must(err)
	var count int32 = clusters.JSON200.Total
	all, err := client.GetResourcesWithResponse(ctx, &plain.GetResourcesParams{})
	must(err)
	var total int64 = all.JSON200.Total
	var shown int32 = all.JSON200.Size
	if count != 1 || total < 2 || int64(shown) != total {
		fail("the lists", count, total, shown)
	}
	owners := 0
	for _, resource := range all.JSON200.Items {
		if item := itemOf(resource); item.owner == id && item.id == *pooled.JSON201.Id {
			owners++
		}
	}
	if owners != 1 {
		fail("the owner of the node pool", owners)
	}

	// Report, with metadata as a literal of the type that the older document makes.
	attempt, name := int32(1), "job"
	data := map[string]interface{}{"checks": 12}
	for _, adapter := range []string{"validation", "dns", "pullsecret", "hypershift"} {
		body := plain.AdapterStatusCreateRequest{
			Adapter: adapter, ObservedGeneration: cluster.Generation, ObservedTime: time.Now(), Data: &data,
			Metadata: &struct {
				Attempt       *int32     `json:"attempt,omitempty"`
				CompletedTime *time.Time `json:"completed_time,omitempty"`
				Duration      *string    `json:"duration,omitempty"`
				JobName       *string    `json:"job_name,omitempty"`
				JobNamespace  *string    `json:"job_namespace,omitempty"`
				StartedTime   *time.Time `json:"started_time,omitempty"`
			}{Attempt: &attempt, JobName: &name},
		}
		for _, condition := range []string{"Available", "Applied", "Health"} {
			entry := plain.ConditionRequest{Type: condition, Status: plain.AdapterConditionStatusTrue, Reason: &name}
			body.Conditions = append(body.Conditions, entry)
		}
		answer, err := client.PutClusterStatusesWithResponse(ctx, id, body)
		must(err)
		if *answer.JSON201.Metadata.JobName != name || answer.JSON201.Adapter != adapter {
			fail("the report of "+adapter, answer.StatusCode())
		}
	}
	statuses, err := client.GetClusterStatusesWithResponse(ctx, id, &plain.GetClusterStatusesParams{})
	must(err)
	count = statuses.JSON200.Total
	found, err := client.GetClusterByIdWithResponse(ctx, id, &plain.GetClusterByIdParams{})
	must(err)
	reconciled := string(found.JSON200.Status.Conditions[0].Status)
	if count != 4 || reconciled != "True" {
		fail("the cluster after all reports", count, reconciled)
	}

	// Change, delete, force-delete.
	next := map[string]interface{}{"region": "us"}
	patched, err := client.PatchClusterByIdWithResponse(ctx, id, plain.ClusterPatchRequest{Spec: &next})
	must(err)
	deleted, err := client.DeleteClusterByIdWithResponse(ctx, id)
	must(err)
	if patched.JSON200.Generation != 2 || deleted.JSON202.Generation != 3 {
		fail("the change", patched.StatusCode(), deleted.StatusCode())
	}
	forced, err := client.ForceDeleteClusterWithResponse(ctx, id, plain.ForceDeleteRequest{Reason: "the test is over"})
	must(err)
	if forced.StatusCode() != http.StatusNoContent {
		fail("the force-delete", forced.StatusCode())
	}

	// References of requests and of answers are of one type.
	references := map[string][]plain.ObjectReference{"channel": {{Id: &id, Kind: "Channel"}}}
	_ = plain.ResourceCreateRequest{Kind: kind, Name: "older", References: &references, Spec: spec}
	_ = plain.Resource{References: &references}
	fmt.Println("clients: code of older clients: passed")
}

func itemOf(resource plain.Resource) item {
	kept := item{id: resource.Id, kind: resource.Kind, generation: resource.Generation}
	if resource.Href != nil {
		kept.href = *resource.Href
	}
	if resource.Labels != nil {
		kept.labels = *resource.Labels
	}
	if owner := resource.OwnerReferences; owner != nil && owner.Id != nil {
		kept.owner = *owner.Id
	}
	for _, condition := range resource.Status.Conditions {
		if condition.Type == "Reconciled" && condition.Status == plain.ResourceConditionStatusTrue {
			kept.since = condition.LastUpdatedTime
		}
	}
	return kept
}

func must(err error) {
	if err != nil {
		fail("a request", err)
	}
}

func fail(what string, values ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"clients: code of older clients:", what}, values...)...)
	os.Exit(1)
}
