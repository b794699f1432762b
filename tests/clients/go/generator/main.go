// A cluster's life through a client of openapi-generator's go, made with enumClassPrefix=true.
//
//	generator HOST_URL
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"hyperfleet.example/clients/generated"
)

func main() {
	configuration := generated.NewConfiguration()
	configuration.Servers = generated.ServerConfigurations{{URL: os.Args[1]}}
	api := generated.NewAPIClient(configuration).ClustersAPI
	ctx := context.Background()

	body := *generated.NewClusterCreateRequest("Cluster", "openapi-generator", map[string]any{"region": "eu"})
	tried, _, err := api.PostCluster(ctx).ClusterCreateRequest(body).DryRun(true).Execute()
	check(err == nil && tried.DryRun.EffectsTotal == 1, "dry run of a create", tried, err)
	created, _, err := api.PostCluster(ctx).ClusterCreateRequest(body).Execute()
	check(err == nil && created.DryRun == nil && created.Spec["region"] == "eu", "create", created, err)
	id := created.GetId()
	_, answer, err := api.PostCluster(ctx).ClusterCreateRequest(body).Execute()
	check(err != nil && answer.StatusCode == http.StatusConflict, "create again", err)

	list, _, err := api.GetClusters(ctx).Search("name = 'openapi-generator'").Execute()
	check(err == nil && list.Total == 1 && list.Items[0].GetId() == id, "list", list, err)
	change := generated.ClusterPatchRequest{Spec: map[string]any{"region": "us"}}
	patched, _, err := api.PatchClusterById(ctx, id).ClusterPatchRequest(change).Execute()
	check(err == nil && patched.Generation == 2, "patch", patched, err)

	for _, adapter := range []string{"validation", "dns", "pullsecret", "hypershift"} {
		reported, answer, err := api.PutClusterStatuses(ctx, id).AdapterStatusCreateRequest(report(adapter, 2)).Execute()
		check(err == nil && answer.StatusCode == 201 && reported.Adapter == adapter, "report", reported, err)
	}
	_, answer, err = api.PutClusterStatuses(ctx, id).AdapterStatusCreateRequest(report("dns", 7)).Execute()
	check(err == nil && answer.StatusCode == 204, "discarded report", err)
	done, _, err := api.GetClusterById(ctx, id).Execute()
	check(err == nil && done.Status.Conditions[0].Status == generated.RESOURCECONDITIONSTATUS_TRUE, "get", done, err)

	deleted, _, err := api.DeleteClusterById(ctx, id).Execute()
	check(err == nil && deleted.DeletedTime != nil, "delete", deleted, err)
	reason := *generated.NewForceDeleteRequest("the test is over")
	answer, err = api.ForceDeleteCluster(ctx, id).ForceDeleteRequest(reason).DryRun(true).Execute()
	check(err == nil && answer.StatusCode == 200, "dry run of a force-delete", err)
	var plan generated.DryRunAnswer
	check(json.NewDecoder(answer.Body).Decode(&plan) == nil && plan.DryRun.Status == 204, "its plan", plan)
	answer, err = api.ForceDeleteCluster(ctx, id).ForceDeleteRequest(reason).Execute()
	check(err == nil && answer.StatusCode == 204, "force-delete", err)
	_, answer, err = api.GetClusterById(ctx, id).Execute()
	check(err != nil && answer.StatusCode == http.StatusNotFound, "get what is gone", err)
	fmt.Println("clients: openapi-generator, Go: passed")
}

func report(adapter string, generation int32) generated.AdapterStatusCreateRequest {
	var conditions []generated.ConditionRequest
	for _, condition := range []string{"Available", "Applied", "Health"} {
		entry := generated.NewConditionRequest(generated.ADAPTERCONDITIONSTATUS_TRUE, condition)
		conditions = append(conditions, *entry)
	}
	return *generated.NewAdapterStatusCreateRequest(adapter, conditions, generation, time.Now())
}

func check(ok bool, what string, found ...any) {
	if !ok {
		fmt.Fprintln(os.Stderr, append([]any{"clients: openapi-generator, Go:", what}, found...)...)
		os.Exit(1)
	}
}
