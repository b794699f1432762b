// A cluster's life through a client of oapi-codegen, made with default options.
//
//	life HOST_URL
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"hyperfleet.example/clients/hf"
)

var adapters = []string{"validation", "dns", "pullsecret", "hypershift"}

func main() {
	client, err := hf.NewClientWithResponses(os.Args[1])
	check(err == nil, "new client: %v", err)
	ctx := context.Background()

	body := hf.ClusterCreateRequest{Kind: "Cluster", Name: "oapi-codegen", Spec: map[string]any{"region": "eu"}}
	tried, err := client.PostClusterWithResponse(ctx, &hf.PostClusterParams{DryRun: to(hf.PostClusterParamsDryRunTrue)}, body)
	check(err == nil && tried.StatusCode() == 201, "dry run of a create: %v %v", tried, err)
	check(tried.JSON201.DryRun.EffectsTotal == 1, "effects: %v", tried.JSON201.DryRun)
	created, err := client.PostClusterWithResponse(ctx, nil, body)
	check(err == nil && created.StatusCode() == 201, "create: %v %v", created, err)
	check(created.JSON201.DryRun == nil && created.JSON201.Spec["region"] == "eu", "created: %v", created.JSON201)
	id := *created.JSON201.Id
	again, err := client.PostClusterWithResponse(ctx, nil, body)
	check(err == nil && again.StatusCode() == 409, "create again: %v %v", again, err)
	problem := again.ApplicationproblemJSON409
	check(problem.Status == again.StatusCode() && *problem.Code == "HYPERFLEET-CNF-001", "problem: %v", problem)

	pool := hf.NodePoolCreateRequest{Kind: "NodePool", Name: "workers", Spec: map[string]any{}}
	pooled, err := client.CreateNodePoolWithResponse(ctx, id, nil, pool)
	check(err == nil && *pooled.JSON201.OwnerReferences.Id == id, "create a node pool: %v %v", pooled, err)

	search := "name = 'oapi-codegen'"
	list, err := client.GetClustersWithResponse(ctx, &hf.GetClustersParams{Search: &search})
	check(err == nil && list.JSON200.Total == 1 && *list.JSON200.Items[0].Id == id, "list: %v %v", list, err)
	change := hf.ClusterPatchRequest{Spec: &hf.ClusterSpec{"region": "us"}}
	patched, err := client.PatchClusterByIdWithResponse(ctx, id, nil, change)
	check(err == nil && patched.JSON200.Generation == 2, "patch: %v %v", patched, err)

	for _, adapter := range adapters {
		report(ctx, client, id, adapter, 2, "Available", "Applied", "Health")
	}
	future := reportOf("dns", 7, "Available", "Applied", "Health")
	discarded, err := client.PutClusterStatusesWithResponse(ctx, id, nil, future)
	check(err == nil && discarded.StatusCode() == 204 && discarded.JSON201 == nil, "discarded: %v %v", discarded, err)
	discarded, err = client.PutClusterStatusesWithResponse(ctx, id, &hf.PutClusterStatusesParams{DryRun: to(hf.PutClusterStatusesParamsDryRunTrue)}, future)
	check(err == nil && discarded.StatusCode() == 200, "dry run of a report: %v %v", discarded, err)
	var plan hf.DryRunAnswer
	check(json.Unmarshal(discarded.Body, &plan) == nil && plan.DryRun.Status == 204, "its plan: %s", discarded.Body)
	done, err := client.GetClusterByIdWithResponse(ctx, id, nil)
	check(err == nil && done.JSON200.Status.Conditions[0].Status == hf.ResourceConditionStatusTrue, "get: %v %v", done, err)
	statuses, err := client.GetClusterStatusesWithResponse(ctx, id, nil)
	check(err == nil && statuses.JSON200.Total == 4, "reports: %v %v", statuses, err)

	deleted, err := client.DeleteClusterByIdWithResponse(ctx, id, nil)
	check(err == nil && deleted.JSON202.DeletedTime != nil, "delete: %v %v", deleted, err)
	reason := hf.ForceDeleteRequest{Reason: "the test is over"}
	planned, err := client.ForceDeleteClusterWithResponse(ctx, id, &hf.ForceDeleteClusterParams{DryRun: to(hf.ForceDeleteClusterParamsDryRunTrue)}, reason)
	check(err == nil && planned.JSON2XX.DryRun.EffectsTotal == 2, "dry run of a force-delete: %v %v", planned, err)
	forced, err := client.ForceDeleteClusterWithResponse(ctx, id, nil, reason)
	check(err == nil && forced.StatusCode() == 204, "force-delete: %v %v", forced, err)
	gone, err := client.GetClusterByIdWithResponse(ctx, id, nil)
	check(err == nil && gone.StatusCode() == http.StatusNotFound, "get what is gone: %v %v", gone, err)
	check(*gone.ApplicationproblemJSON404.Code == "HYPERFLEET-NTF-001", "problem: %v", gone.ApplicationproblemJSON404)

	// Without force: the last report that cleaning up is done removes it.
	body.Name = "oapi-codegen-2"
	created, err = client.PostClusterWithResponse(ctx, nil, body)
	check(err == nil && created.StatusCode() == 201, "create: %v %v", created, err)
	id = *created.JSON201.Id
	deleted, err = client.DeleteClusterByIdWithResponse(ctx, id, nil)
	check(err == nil && deleted.StatusCode() == 202, "delete: %v %v", deleted, err)
	for _, adapter := range adapters {
		report(ctx, client, id, adapter, deleted.JSON202.Generation, "Available", "Applied", "Health", "Finalized")
	}
	gone, err = client.GetClusterByIdWithResponse(ctx, id, nil)
	check(err == nil && gone.StatusCode() == http.StatusNotFound, "get what is finalized: %v %v", gone, err)
	fmt.Println("clients: oapi-codegen: passed")
}

func reportOf(adapter string, generation int32, conditions ...string) hf.AdapterStatusCreateRequest {
	body := hf.AdapterStatusCreateRequest{Adapter: adapter, ObservedGeneration: generation, ObservedTime: time.Now()}
	for _, condition := range conditions {
		entry := hf.ConditionRequest{Type: condition, Status: hf.AdapterConditionStatusTrue}
		body.Conditions = append(body.Conditions, entry)
	}
	return body
}

func report(ctx context.Context, client *hf.ClientWithResponses, id, adapter string, generation int32, conditions ...string) {
	answer, err := client.PutClusterStatusesWithResponse(ctx, id, nil, reportOf(adapter, generation, conditions...))
	check(err == nil && answer.StatusCode() == 201, "report of %s: %v %v", adapter, answer, err)
	check(answer.JSON201.Adapter == adapter && answer.JSON201.DryRun == nil, "answer to a report: %v", answer.JSON201)
}

func to[T any](value T) *T { return &value }

func check(ok bool, format string, values ...any) {
	if !ok {
		fmt.Fprintf(os.Stderr, "clients: oapi-codegen: "+format+"\n", values...)
		os.Exit(1)
	}
}
