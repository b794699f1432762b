import java.net.URI;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ClustersApi;
import org.openapitools.client.model.AdapterConditionStatus;
import org.openapitools.client.model.AdapterStatusCreateRequest;
import org.openapitools.client.model.ClusterCreateRequest;
import org.openapitools.client.model.ClusterPatchRequest;
import org.openapitools.client.model.ConditionRequest;
import org.openapitools.client.model.ForceDeleteRequest;
import org.openapitools.client.model.ResourceConditionStatus;

/** A cluster's life through a client of openapi-generator's java, library native: {@code Life HOST_URL}. */
public final class Life {
    private interface Request {
        void send() throws ApiException;
    }

    public static void main(String[] arguments) throws ApiException {
        URI host = URI.create(arguments[0]);
        ApiClient client = new ApiClient();
        client.setScheme(host.getScheme()).setHost(host.getHost()).setPort(host.getPort());
        ClustersApi api = new ClustersApi(client);

        ClusterCreateRequest body = new ClusterCreateRequest().kind("Cluster").name("java").spec(Map.of("region", "eu"));
        var tried = api.postCluster(body, null, true, null);
        check(tried.getDryRun().getEffectsTotal() == 1, "dry run of a create", tried);
        var created = api.postCluster(body, null, null, null);
        check(created.getDryRun() == null && created.getSpec().get("region").equals("eu"), "create", created);
        String id = created.getId();
        refused(409, () -> api.postCluster(body, null, null, null));

        var query = ClustersApi.APIGetClustersRequest.newBuilder().search("name = 'java'").build();
        var list = api.getClusters(query);
        check(list.getTotal() == 1 && list.getItems().get(0).getId().equals(id), "list", list);
        ClusterPatchRequest change = new ClusterPatchRequest().spec(Map.of("region", "us"));
        var patched = api.patchClusterById(id, change, null, null, null, null, null);
        check(patched.getGeneration() == 2, "patch", patched);

        for (String adapter : List.of("validation", "dns", "pullsecret", "hypershift")) {
            var reported = api.putClusterStatuses(id, report(adapter, 2), null, null, null, null);
            check(reported.getAdapter().equals(adapter) && reported.getDryRun() == null, "report", reported);
        }
        var discarded = api.putClusterStatusesWithHttpInfo(id, report("dns", 7), null, null, null, null);
        check(discarded.getStatusCode() == 204 && discarded.getData() == null, "discarded report", discarded.getData());
        var done = api.getClusterById(id, null, null, null, null, null, null, null);
        check(done.getStatus().getConditions().get(0).getStatus() == ResourceConditionStatus.TRUE, "get", done);

        var deleted = api.deleteClusterById(id, null, null, null, null, null);
        check(deleted.getDeletedTime() != null, "delete", deleted);
        ForceDeleteRequest reason = new ForceDeleteRequest().reason("the test is over");
        api.forceDeleteCluster(id, reason, null, true, null, null, null);
        api.forceDeleteCluster(id, reason, null, null, null, null, null);
        refused(404, () -> api.getClusterById(id, null, null, null, null, null, null, null));
        System.out.println("clients: openapi-generator, Java: passed");
    }

    private static AdapterStatusCreateRequest report(String adapter, int generation) {
        List<ConditionRequest> conditions = Stream.of("Available", "Applied", "Health")
            .map(type -> new ConditionRequest().type(type).status(AdapterConditionStatus.TRUE)).toList();
        return new AdapterStatusCreateRequest().adapter(adapter).observedGeneration(generation)
            .observedTime(OffsetDateTime.now()).conditions(conditions);
    }

    private static void refused(int status, Request request) {
        try {
            request.send();
        } catch (ApiException error) {
            check(error.getCode() == status, "not " + status, error);
            return;
        }
        check(false, "not refused with " + status, null);
    }

    private static void check(boolean ok, String what, Object found) {
        if (!ok) {
            System.err.println("clients: openapi-generator, Java: " + what + ": " + found);
            System.exit(1);
        }
    }
}
