"""What schemathesis cannot know of the service: checks of ours, and the few failures that are none."""

import itertools
import os
import uuid
from urllib.parse import parse_qsl, urlsplit

import requests
import schemathesis
from jsonschema import Draft4Validator

BASE = os.environ["HYPERFLEET_BASE"]
_count = itertools.count()


def _sent(response):
    """The query as it went out: names and values, blank ones too."""
    return parse_qsl(urlsplit(response.request.url).query, keep_blank_values=True)


def _is_sparse(response):
    """Whether the answer has some members of each resource only."""
    names = ",".join(value for name, value in _sent(response) if name == "fields")
    return any(name.strip() for name in names.split(","))


@schemathesis.check
def problems_are_problems(ctx, response, case):
    """Every 4xx and 5xx is a problem (RFC 9457) about this very request."""
    if response.status_code < 400:
        return
    kind = response.headers.get("content-type", ["none"])[0]
    assert kind == "application/problem+json", f"{response.status_code} is {kind}"
    if case.method.upper() == "HEAD":
        return
    problem = response.json()
    assert problem["status"] == response.status_code, problem
    assert problem["code"].startswith("HYPERFLEET-"), problem
    assert problem["trace_id"] == response.headers["x-request-id"][0], problem


@schemathesis.check
def sparse_answers_fit(ctx, response, case):
    """With `fields` the answer holds sparse resources: the document cannot say so, as answers do
    not depend on parameters there."""
    if response.status_code != 200 or not _is_sparse(response):
        return
    schema = {
        "$ref": "#/components/schemas/SparseResource",
        "components": case.operation.schema.raw_schema["components"],
    }
    body = response.json()
    for resource in body.get("items", [body]):
        faults = [fault.message for fault in Draft4Validator(schema).iter_errors(resource)]
        assert not faults, faults


def _as_read(value, depth=0):
    """A body as the service reads it, which the document does not say: `null` counts as absent, except as a spec, and
    nobody reads `id` and `href` of creates and `href` of references."""
    if isinstance(value, list):
        return [_as_read(element, depth + 1) for element in value]
    if not isinstance(value, dict):
        return value
    ignored = {0: {"href", "id"}, 3: {"href"}}.get(depth, set())
    return {
        name: member if depth == 0 and name in ("spec", "data") else _as_read(member, depth + 1)
        for name, member in value.items()
        if name not in ignored and (member is not None or name == "spec")
    }


def _fits(case, body):
    """Whether a body fits the schema of its operation."""
    content = case.operation.definition.raw["requestBody"]["content"]["application/json"]
    components = case.operation.schema.raw_schema["components"]
    schema = {"allOf": [content["schema"]], "components": components}
    return Draft4Validator(schema).is_valid(body)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """False for what is no fault, each for a reason."""
    kind = type(failure).__name__
    if kind == "JsonSchemaError" and response.status_code == 200 and _is_sparse(response):
        return False  # checked above
    if kind == "UndefinedStatusCode":
        # The dry run of a report that is discarded: the document says so in a text.
        return not (case.method.upper() == "PUT" and response.status_code == 200 and ("dryRun", "true") in _sent(response))
    if kind == "AcceptedNegativeData":
        # Patterns of headers document what every client can send. The service reads all that RFC 9110 and the draft of
        # Idempotency-Key allow, blanks around it, too.
        if "in header" in failure.message:
            return False
        # A blank one counts as absent. The message may name another part of the same request.
        if any(not value.strip() for value in (case.headers or {}).values()):
            return False
        sent, body = _sent(response), case.body
        # Blank parameters count as absent, and of repeated ones the first counts, as in the older
        # service.
        names = [name for name, _ in sent]
        if not all(value.strip() for _, value in sent) or len(names) > len(set(names)):
            return False
        # Only a watch reads these two, and `pageSize` wins over `size`.
        if "initial" in names or "position" in names or {"size", "pageSize"} <= set(names):
            return False
        if isinstance(body, dict):
            if case.method == "PUT":
                # Without it the time of arrival is taken, but clients are asked to send it.
                if body.get("observed_time") is None:
                    return False
                # What is of a generation to come is discarded, whatever else it lacks; a dry run is answered 200 then.
                if response.status_code in (200, 204) and body.get("conditions") is None:
                    return False
            if not _fits(case, body) and _fits(case, _as_read(body)):
                return False
    return True


@schemathesis.hook
def before_call(context, case, kwargs):
    """No request is a watch, which has no end; every other force-delete finds something to remove."""
    if str((case.query or {}).get("watch")).lower() == "true":
        del case.query["watch"]
    operation = case.operation.definition.raw.get("operationId", "")
    path = case.path_parameters or {}
    is_ours = set(path) <= {"cluster_id", "nodepool_id", "resource_id"}
    if not operation.startswith("forceDelete") or not is_ours or next(_count) % 2:
        return
    cluster = {"kind": "Cluster", "name": f"forced-{uuid.uuid4()}", "spec": {}}
    cluster = requests.post(f"{BASE}/clusters", json=cluster, timeout=10).json()
    url = f"{BASE}/clusters/{cluster['id']}"
    pool = {"kind": "NodePool", "name": "forced", "spec": {}}
    pool = requests.post(f"{url}/nodepools", json=pool, timeout=10).json()
    requests.delete(url, timeout=10)
    wanted = {"cluster_id": cluster["id"], "nodepool_id": pool["id"], "resource_id": cluster["id"]}
    for name in path:
        path[name] = wanted[name]
