"""A cluster's life, told through a client that a stock generator made from the document.

    smoke.py FOLDER_OF_THE_CLIENT HOST_URL
"""

import datetime
import sys

sys.path.insert(0, sys.argv[1])

from hyperfleet_client import Client, models  # noqa: E402
from hyperfleet_client.api.audit import get_audit  # noqa: E402
from hyperfleet_client.api.clusters import (  # noqa: E402
    delete_cluster_by_id,
    force_delete_cluster,
    get_cluster_by_id,
    get_cluster_statuses,
    get_clusters,
    patch_cluster_by_id,
    post_cluster,
    put_cluster_statuses,
)
from hyperfleet_client.api.node_pools import (  # noqa: E402
    create_node_pool,
    get_node_pool_by_id,
    get_node_pools_by_cluster_id,
)
from hyperfleet_client.api.resources import get_resources  # noqa: E402
from hyperfleet_client.errors import UnexpectedStatus  # noqa: E402
from hyperfleet_client.types import UNSET  # noqa: E402

client = Client(base_url=sys.argv[2], raise_on_unexpected_status=True)


def spec(kind, **members):
    made = kind()
    made.additional_properties = members
    return made


def call(function, *path, status, kind=type(None), **arguments):
    """Calls an operation; its answer must have this status, and be of this type."""
    answer = function.sync_detailed(*path, client=client, **arguments)
    assert answer.status_code == status, (function.__name__, answer)
    assert isinstance(answer.parsed, kind), (function.__name__, answer.parsed)
    return answer.parsed


body = models.ClusterCreateRequest(
    kind="Cluster",
    name="smoke",
    spec=spec(models.ClusterSpec, region="eu"),
)
cluster = call(post_cluster, body=body, status=201, kind=models.Cluster)
assert (cluster.name, cluster.generation, cluster.deleted_time) == ("smoke", 1, UNSET)
assert cluster.spec["region"] == "eu"
assert {c.type_ for c in cluster.status.conditions} == {"Reconciled", "LastKnownReconciled"}
problem = call(post_cluster, body=body, status=409, kind=models.Error)
assert (problem.status, problem.code) == (409, "HYPERFLEET-CNF-001")

pool = models.NodePoolCreateRequest(
    kind="NodePool", name="workers", spec=models.NodePoolSpec()
)
pool = call(create_node_pool, cluster.id, body=pool, status=201, kind=models.NodePool)
assert pool.owner_references.id == cluster.id
call(get_node_pool_by_id, cluster.id, pool.id, status=200, kind=models.NodePool)
pools = call(get_node_pools_by_cluster_id, cluster.id, status=200, kind=models.NodePoolList)
assert [item.id for item in pools.items] == [pool.id]
# A list is continued with what clients send by themselves.
first = call(get_resources, size=1, status=200, kind=models.ResourceList)
second = call(get_resources, size=1, continue_=first.continue_, status=200, kind=models.ResourceList)
assert second.page == 2
assert {item.id for item in first.items + second.items} == {cluster.id, pool.id}

TRUE = models.AdapterConditionStatus.TRUE
for adapter in ["validation", "dns", "pullsecret", "hypershift"]:
    report = models.AdapterStatusCreateRequest(
        adapter=adapter,
        observed_generation=1,
        observed_time=datetime.datetime.now(datetime.timezone.utc),
        conditions=[
            models.ConditionRequest(type_=kind, status=TRUE)
            for kind in ["Available", "Applied", "Health"]
        ],
    )
    call(put_cluster_statuses, cluster.id, body=report, status=201, kind=models.AdapterStatus)
report.observed_generation = 7
try:
    call(put_cluster_statuses, cluster.id, body=report, status=201)
    sys.exit("smoke: a report about a later generation was accepted")
except UnexpectedStatus as discarded:
    # The plain document leaves out this answer.
    assert discarded.status_code == 204, discarded
reports = call(get_cluster_statuses, cluster.id, status=200, kind=models.AdapterStatusList)
assert reports.total == 4
done = call(get_cluster_by_id, cluster.id, status=200, kind=models.Cluster)
assert done.status.conditions[0].status == models.ResourceConditionStatus.TRUE

search = "name = 'smoke' and status.conditions.Reconciled = 'True'"
found = call(get_clusters, search=search, size=5, status=200, kind=models.ClusterList)
assert [item.id for item in found.items] == [cluster.id]
fault = call(get_clusters, search="name =", status=400, kind=models.Error)
assert fault.code == "HYPERFLEET-VAL-005"

change = models.ClusterPatchRequest(spec=spec(models.ClusterSpec, region="us"))
changed = call(patch_cluster_by_id, cluster.id, body=change, status=200, kind=models.Cluster)
assert (changed.generation, changed.spec["region"]) == (2, "us")

deleted = call(delete_cluster_by_id, cluster.id, status=202, kind=models.Cluster)
assert deleted.deleted_by == "system@hyperfleet.local"
reason = models.ForceDeleteRequest(reason="the smoke test is over")
call(force_delete_cluster, cluster.id, body=reason, status=204)
gone = call(get_cluster_by_id, cluster.id, status=404, kind=models.Error)
assert gone.code == "HYPERFLEET-NTF-001"

trail = call(
    get_audit, resource_id=cluster.id, status=200, kind=models.AuditList
)
actions = [entry.action.value for entry in trail.items]
assert actions == ["force_delete", "delete", "patch", "create"], actions
print(f"smoke: {len(actions)} changes through a generated client, all as expected")
