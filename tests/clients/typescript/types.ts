// A cluster's life by openapi-fetch, with the types of openapi-typescript.
//
//   types.js HOST_URL
import createClient from "openapi-fetch";
import type { components, paths } from "./types/schema.js";
import { adapters, check, host } from "./common.js";

const api = createClient<paths, "application/json" | "application/problem+json">({ baseUrl: host });
const clusters = "/api/hyperfleet/v1/clusters";
const one = "/api/hyperfleet/v1/clusters/{cluster_id}";

const body = { kind: "Cluster", name: "openapi-fetch", spec: { region: "eu" } };
const tried = await api.POST(clusters, { body, params: { query: { dryRun: true } } });
check(tried.data?.dry_run?.effects_total === 1, "dry run of a create", tried.error);
const created = await api.POST(clusters, { body });
check(created.data?.spec["region"] === "eu", "create", created.error);
const path = { cluster_id: created.data!.id! };
const again = await api.POST(clusters, { body });
check(again.response.status === 409 && again.error?.code === "HYPERFLEET-CNF-001", "create again", again.error);

const list = await api.GET(clusters, { params: { query: { search: "name = 'openapi-fetch'" } } });
check(list.data?.total === 1 && list.data.items[0]?.id === path.cluster_id, "list", list.error);
const patched = await api.PATCH(one, { params: { path }, body: { spec: { region: "us" } } });
check(patched.data?.generation === 2, "patch", patched.error);

const report = (adapter: string, generation: number): components["schemas"]["AdapterStatusCreateRequest"] => ({
  adapter,
  observed_generation: generation,
  observed_time: new Date().toISOString(),
  conditions: ["Available", "Applied", "Health"].map((type) => ({ type, status: "True" })),
});
for (const adapter of adapters) {
  const reported = await api.PUT(`${one}/statuses`, { params: { path }, body: report(adapter, 2) });
  check(reported.response.status === 201 && reported.data?.adapter === adapter, "report", reported.error);
}
const discarded = await api.PUT(`${one}/statuses`, { params: { path }, body: report("dns", 7) });
check(discarded.response.status === 204, "discarded report", discarded.error);
const done = await api.GET(one, { params: { path } });
check(done.data?.status.conditions[0]?.status === "True", "get", done.error);

const deleted = await api.DELETE(one, { params: { path } });
check(deleted.data?.deleted_time !== undefined, "delete", deleted.error);
const reason = { reason: "the test is over" };
const plan = await api.POST(`${one}/force-delete`, { params: { path, query: { dryRun: true } }, body: reason });
check(plan.data?.dry_run.status === 204, "dry run of a force-delete", plan.error);
const forced = await api.POST(`${one}/force-delete`, { params: { path }, body: reason });
check(forced.response.status === 204, "force-delete", forced.error);
const gone = await api.GET(one, { params: { path } });
check(gone.response.status === 404, "get what is gone", gone.data);
console.log("clients: openapi-typescript: passed");
