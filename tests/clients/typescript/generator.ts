// A cluster's life by a client of openapi-generator's typescript-fetch.
//
//   generator.js HOST_URL
import { AdapterConditionStatus, ClustersApi, Configuration, ResponseError } from "./generator/index.js";
import { adapters, check, host } from "./common.js";

const api = new ClustersApi(new Configuration({ basePath: host }));

const clusterCreateRequest = { kind: "Cluster", name: "typescript-fetch", spec: { region: "eu" } };
const tried = await api.postCluster({ clusterCreateRequest, dryRun: true });
check(tried.dryRun?.effectsTotal === 1, "dry run of a create", tried);
const created = await api.postCluster({ clusterCreateRequest });
check(created.dryRun === undefined && created.spec["region"] === "eu", "create", created);
const clusterId = created.id!;
await refused(409, () => api.postCluster({ clusterCreateRequest }));

const list = await api.getClusters({ search: "name = 'typescript-fetch'" });
check(list.total === 1 && list.items[0]?.id === clusterId, "list", list);
const patched = await api.patchClusterById({ clusterId, clusterPatchRequest: { spec: { region: "us" } } });
check(patched.generation === 2, "patch", patched);

const report = (adapter: string, observedGeneration: number) => ({
  adapter,
  observedGeneration,
  observedTime: new Date(),
  conditions: ["Available", "Applied", "Health"].map((type) => ({ type, status: AdapterConditionStatus.True })),
});
for (const adapter of adapters) {
  const reported = await api.putClusterStatuses({ clusterId, adapterStatusCreateRequest: report(adapter, 2) });
  check(reported?.adapter === adapter && reported.lastReportTime instanceof Date, "report", reported);
}
const discarded = await api.putClusterStatuses({ clusterId, adapterStatusCreateRequest: report("dns", 7) });
check(discarded === null, "discarded report", discarded);
const done = await api.getClusterById({ clusterId });
check(done.status.conditions[0]?.status === "True", "get", done);

const deleted = await api.deleteClusterById({ clusterId });
check(deleted.deletedTime instanceof Date, "delete", deleted);
const forceDeleteRequest = { reason: "the test is over" };
const plan = await api.forceDeleteClusterRaw({ clusterId, forceDeleteRequest, dryRun: true });
check((await plan.raw.json()).dry_run.status === 204, "dry run of a force-delete", plan.raw.status);
await api.forceDeleteCluster({ clusterId, forceDeleteRequest });
await refused(404, () => api.getClusterById({ clusterId }));
console.log("clients: openapi-generator, TypeScript: passed");

async function refused(status: number, request: () => Promise<unknown>) {
  const answer = await request().catch((error: unknown) => error);
  check(answer instanceof ResponseError && answer.response.status === status, `no ${status}`, answer);
}
