#!/usr/bin/env python3
"""examples/kubernetes: accepted by the schema of Kubernetes, of a piece with each other, and what they ask for makes a job.

manifests_test.py schema|run EXAMPLES ESPALIER

Exit status 77: what it needs is not here. The schema is derived by derive.py, which says from what.
"""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "launchers"))
from launching import finish, map_names, need_namespace, skip, start, temporary  # noqa: E402

try:
    import jsonschema
    import yaml
except ImportError as missing:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):  # Debian's has them
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    skip(f"{missing}: scripts/bootstrap launchers installs it")

PART, EXAMPLES, ESPALIER = sys.argv[1], pathlib.Path(sys.argv[2]), os.path.abspath(sys.argv[3])
SCHEMA = json.loads((HERE / "schema.json").read_text())
KEY = "0123456789abcdef" * 4


def load():
    """All manifests, by kind."""
    found = [one for path in sorted(EXAMPLES.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]
    assert sorted(one["kind"] for one in found) == ["Job", "Secret", "Service"], found
    return {one["kind"]: one for one in found}


def complaints(manifest):
    schema = {**SCHEMA, "$ref": f"#/definitions/{SCHEMA['kinds'][manifest['kind']]}"}
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(manifest)]


def container(job):
    return job["spec"]["template"]["spec"]["containers"][0]


def spoil(manifests):
    """Manifests that must be refused, each with one mistake."""
    def spoilt(change):
        job = copy.deepcopy(manifests["Job"])
        change(job)
        return job

    yield spoilt(lambda job: job["spec"].update(completion=4))
    yield spoilt(lambda job: job["spec"].update(completions="four"))
    yield spoilt(lambda job: job["spec"].pop("template"))
    yield spoilt(lambda job: job.update(apiVersion="batch/v1beta1"))
    yield spoilt(lambda job: container(job)["env"][0].update(value=4))
    yield spoilt(lambda job: container(job).pop("name"))
    yield spoilt(lambda job: job["spec"]["template"]["spec"]["volumes"][0]["secret"].update(name="espalier-key"))


def check_schema():
    manifests = load()
    for kind, manifest in manifests.items():
        assert not complaints(manifest), (kind, complaints(manifest))
    for number, wrong in enumerate(spoil(manifests)):
        assert complaints(wrong), f"mistake {number} was accepted"
    # What no schema knows: the three belong together.
    job, service, secret = manifests["Job"]["spec"], manifests["Service"], manifests["Secret"]
    pod, env = job["template"]["spec"], {one["name"]: one["value"] for one in container(manifests["Job"])["env"]}
    assert job["completionMode"] == "Indexed" and job["completions"] == job["parallelism"] == int(env["ESP_SIZE"])
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"] == {"job-name": manifests["Job"]["metadata"]["name"]}
    assert pod["subdomain"] == service["metadata"]["name"]
    volume, mount = pod["volumes"][0], container(manifests["Job"])["volumeMounts"][0]
    assert volume["secret"]["secretName"] == secret["metadata"]["name"] and volume["name"] == mount["name"]
    (item,) = secret["stringData"]
    assert env["ESP_KEY_FILE"] == f"{mount['mountPath']}/{item}"


def check_run():
    """Pods are processes with names of their own, and the secret is a file as Kubernetes makes them: a link to one of root's."""
    need_namespace(network=True)
    manifests = load()
    job = manifests["Job"]
    env = {one["name"]: one["value"] for one in container(job)["env"]}
    name, size, domain = job["metadata"]["name"], job["spec"]["completions"], f"{manifests['Service']['metadata']['name']}.default.svc.cluster.local"
    place = pathlib.Path(env["ESP_KEY_FILE"])
    mode = job["spec"]["template"]["spec"]["volumes"][0]["secret"]["defaultMode"]
    words = [ESPALIER if word == "espalier" else word for word in container(job)["command"]]

    def secret(text):
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        (place.parent / "..data").mkdir(parents=True)
        file = place.parent / "..data" / place.name
        file.write_text(text)
        file.chmod(mode)
        place.symlink_to(file)

    def run():
        pods = [start(["unshare", "-u", "sh", "-c", 'hostname "$0" && exec "$@"', f"{name}-{rank}", *words], {**env, "JOB_COMPLETION_INDEX": str(rank)})
                for rank in range(size)]
        return [finish(pod) for pod in pods]

    with temporary() as path:
        map_names(path, "".join(f"127.0.0.1 {name}-{rank}.{domain} {name}-{rank}\n" for rank in range(size)))
        secret(KEY)
        for rank, (status, out, err) in enumerate(run()):
            assert status == 0, (rank, out, err)
            assert f"rank {rank} of {size} (JOB_COMPLETION_INDEX, ESP_SIZE), leader {name}-0.{domain}:29501 (the pod with index 0)" in err, err
            assert re.search(rf"joined {size} ranks on {size} hosts", err), err
            assert (f"# nRanks {size} " in out) == (rank == 0), out
        secret(manifests["Secret"]["stringData"][place.name])  # nobody takes the one that is published for his own
        for status, _, err in run():
            assert status != 0 and "a key is 64 hexadecimal digits" in err, err


if __name__ == "__main__":
    {"schema": check_schema, "run": check_run}[PART]()
