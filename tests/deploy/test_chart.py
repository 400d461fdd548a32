"""The Helm chart as Helm renders it, for each of its value sets, and its validators' own tests."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from libs.eventbus.membership import BROKER_TIMEOUT_S
from libs.eventbus.policies import FlowPolicy
from libs.service.http import GRACE_S
from libs.service.upkeep import DRAIN_S
from tests.deploy.repository import CHART, read_yaml, variables_read
from tests.deploy.tools import run, tool

SETS = ("minimal", "autoscaled", "managed")
KUBERNETES = "1.35"
COMPONENTS: dict[str, dict[str, Any]] = read_yaml(CHART / "files" / "components.yaml")
SECRET_KEYS = {
    *("DATABASE_URL", "ELASTICSEARCH_URL", "S3_ACCESS_KEY", "S3_SECRET_KEY", "MILVUS_TOKEN"),
    *("EMBED_API_KEY", "LLM_API_KEY", "SLUICE_API_KEY"),
    *("KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"),
}


def template(values: str, *arguments: str, chart: Path = CHART) -> tuple[int, str]:
    file = CHART / "ci" / f"{values}-values.yaml"
    return run(tool("helm"), "template", "sluice", chart, "-f", file, *arguments)


@cache
def rendered(values: str) -> tuple[dict[str, Any], ...]:
    code, said = template(values)
    assert code == 0, said
    return tuple(each for each in yaml.safe_load_all(said) if each)


def of_kind(values: str, kind: str) -> dict[str, Any]:
    """By name, without the release's."""
    return {
        each["metadata"]["name"].removeprefix("sluice-"): each
        for each in rendered(values)
        if each["kind"] == kind
    }


def pods(values: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, each in (of_kind(values, "Deployment") | of_kind(values, "Job")).items():
        yield name, each["spec"]["template"]["spec"]


def env_of(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (container,) = pod["containers"]
    names = [variable["name"] for variable in container["env"]]
    assert len(names) == len(set(names)), "a variable is set twice"
    return {variable["name"]: variable for variable in container["env"]}


@pytest.mark.parametrize("values", SETS)
def test_helm_and_kubernetes_find_nothing_wrong(values: str, tmp_path: Path) -> None:
    file = CHART / "ci" / f"{values}-values.yaml"
    code, said = run(tool("helm"), "lint", "--strict", CHART, "-f", file)
    assert code == 0, said
    (manifest := tmp_path / "all.yaml").write_text(template(values)[1])
    code, said = run(tool("kubernetes-validate"), "--strict", "-k", KUBERNETES, manifest)
    assert code == 0, said
    unknown = {line.split("kind ")[1].split(" ")[0] for line in said.splitlines() if "WARN" in line}
    assert unknown <= {"ScaledObject", "TriggerAuthentication"}, said


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("replicas: {{ $chosen.replicas }}", "replicas: many"),
        ("runAsNonRoot: true", "runAsNonRoot: 'yes'"),
        ("readinessProbe:", "readynessProbe:"),
    ],
)
def test_a_planted_fault_in_a_manifest_is_found(tmp_path: Path, right: str, wrong: str) -> None:
    chart = planted(tmp_path, right, wrong)
    code, said = template("minimal", chart=chart)
    assert code == 0, said
    (manifest := tmp_path / "all.yaml").write_text(said)
    assert run(tool("kubernetes-validate"), "--strict", "-k", KUBERNETES, manifest)[0] != 0


def test_a_planted_fault_in_a_template_is_found(tmp_path: Path) -> None:
    chart = planted(tmp_path, "$chosen.replicas }}", "$chosen.replicas | nosuch }}")
    file = CHART / "ci" / "minimal-values.yaml"
    code, said = run(tool("helm"), "lint", "--strict", chart, "-f", file)
    assert code != 0
    assert "nosuch" in said


def planted(folder: Path, right: str, wrong: str) -> Path:
    """The chart with a fault in one of its templates."""
    chart = folder / "sluice"
    shutil.copytree(CHART, chart)
    found = [file for file in (chart / "templates").iterdir() if right in file.read_text()]
    assert found
    for file in found:
        file.write_text(file.read_text().replace(right, wrong))
    return chart


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("kafka.bootstrap=", "/kafka/bootstrap"),
        ("kafka.bootstrp=kafka:9092", "'bootstrp' not allowed"),
        ("kafka.securityProtocol=TLS", "/kafka/securityProtocol"),
        ("services.executor.replicas=0", "/services/executor/replicas"),
        ("terminationGracePeriodSeconds=5", "/terminationGracePeriodSeconds"),
        ("extraEnv.LLM_API_KEY=abc", "propertyName 'LLM_API_KEY'"),
        ("secrets.values.DATABASE_URL=null", "/secrets/values/DATABASE_URL"),
        ("kafka.securityProtocol=SASL_SSL", "kafka.saslMechanism"),
        ("llm.baseUrl=http://model:8000/v1", "llm.model"),
        ("ingress.enabled=true", "ingress.host"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(setting: str, said: str) -> None:
    code, answer = template("minimal", "--set", setting)
    assert code != 0
    assert said in answer


def test_without_any_secret_both_ways_to_give_one_are_named() -> None:
    code, said = template("autoscaled", "--set", "secrets.existingSecret=")
    assert code != 0
    assert "secrets.values.DATABASE_URL (or secrets.existingSecret) is missing" in said


def test_more_replicas_than_partitions_are_refused() -> None:
    code, said = template("autoscaled", "--set", "services.executor.scale.max=7")
    assert code != 0
    assert "6 partitions" in said


@pytest.mark.parametrize("values", SETS)
def test_every_variable_is_one_that_the_code_reads(values: str) -> None:
    known = variables_read()
    for name, pod in pods(values):
        assert set(env_of(pod)) <= known, name


@pytest.mark.parametrize("values", SETS)
def test_secrets_come_from_the_secret_and_go_to_those_who_need_them(values: str) -> None:
    secret = {"minimal": "sluice"}.get(values, "sluice-secrets")
    for name, pod in pods(values):
        env = env_of(pod)
        for key in SECRET_KEYS & set(env):
            assert env[key]["valueFrom"]["secretKeyRef"]["name"] == secret, (name, key)
        assert ("SLUICE_API_KEY" in env) == (name == "first-key"), name
        assert "LLM_API_KEY" not in env or COMPONENTS[name].get("model"), name
    assert set(of_kind(values, "Secret")) == ({"sluice"} if values == "minimal" else set())


@pytest.mark.parametrize("values", SETS)
def test_every_pod_is_confined_and_bounded(values: str) -> None:
    accounts = of_kind(values, "ServiceAccount")
    for name, pod in pods(values):
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        assert pod["automountServiceAccountToken"] is False, name
        account = accounts[pod["serviceAccountName"].removeprefix("sluice-")]
        assert account["automountServiceAccountToken"] is False, name
        assert "memory" in container["resources"]["limits"], name
        assert {"cpu", "memory"} <= set(container["resources"]["requests"]), name
        assert not container["image"].endswith(":latest"), name


@pytest.mark.parametrize("values", SETS)
def test_a_pod_may_drain_before_it_is_killed(values: str) -> None:
    needed = FlowPolicy().drain_timeout_s + BROKER_TIMEOUT_S + DRAIN_S + GRACE_S + 2
    for name in of_kind(values, "Deployment"):
        pod = dict(pods(values))[name]
        hook = pod["containers"][0].get("lifecycle", {}).get("preStop", {})
        waits = int(hook["exec"]["command"][1]) if hook else 0
        assert pod["terminationGracePeriodSeconds"] > needed + waits, name
        assert bool(hook) == ("port" in COMPONENTS[name]), name


@pytest.mark.parametrize("values", SETS)
def test_every_service_has_probes_a_budget_and_a_policy(values: str) -> None:
    assert set(of_kind(values, "Deployment")) == set(COMPONENTS)
    assert set(of_kind(values, "PodDisruptionBudget")) == set(COMPONENTS)
    policies = set(of_kind(values, "NetworkPolicy"))
    assert policies == (set() if values == "minimal" else {*COMPONENTS, "jobs"})
    for name, pod in pods(values):
        if name in COMPONENTS:
            (container,) = pod["containers"]
            assert container["livenessProbe"]["httpGet"]["path"] == "/live", name
            assert container["readinessProbe"]["httpGet"]["path"] == "/ready", name


def test_only_the_gateway_reaches_ingest() -> None:
    policy = of_kind("managed", "NetworkPolicy")["ingest"]["spec"]
    (rule,) = [rule for rule in policy["ingress"] if {"port": 8081} in rule["ports"]]
    (peer,) = rule["from"]
    labels = peer["podSelector"]["matchLabels"]
    assert labels["app.kubernetes.io/component"] == "gateway"
    gateway = of_kind("managed", "Deployment")["gateway"]["spec"]["template"]["metadata"]["labels"]
    assert labels.items() <= gateway.items()


def test_a_policy_names_the_ports_that_its_service_uses() -> None:
    def ports(name: str) -> set[int]:
        egress = of_kind("autoscaled", "NetworkPolicy")[name]["spec"]["egress"]
        return {port["port"] for rule in egress for port in rule["ports"]}

    assert {9092, 3306, 19530} <= ports("executor")
    assert 19530 not in ports("parser")
    assert 9998 in ports("parser")
    assert not {19530, 9998} & ports("jobs")


@pytest.mark.parametrize("values", ["autoscaled", "managed"])
def test_every_group_is_scaled_by_the_lag_of_each_of_its_topics(values: str) -> None:
    scaled = of_kind(values, "ScaledObject")
    assert set(scaled) == {name for name, each in COMPONENTS.items() if "group" in each}
    deployments = of_kind(values, "Deployment")
    for name, each in scaled.items():
        spec = each["spec"]
        triggers = [trigger["metadata"] for trigger in spec["triggers"]]
        assert {trigger["topic"] for trigger in triggers} == set(COMPONENTS[name]["topics"])
        assert {trigger["consumerGroup"] for trigger in triggers} == {COMPONENTS[name]["group"]}
        assert spec["scaleTargetRef"]["name"] == deployments[name]["metadata"]["name"]
        assert "replicas" not in deployments[name]["spec"], "Helm and KEDA would quarrel"
        bounds = (spec["minReplicaCount"], spec["fallback"]["replicas"], spec["maxReplicaCount"])
        assert bounds == tuple(sorted(bounds)), name
        assert bounds[0] >= 1


def test_keda_reads_a_guarded_broker_with_the_services_credentials() -> None:
    (authentication,) = of_kind("managed", "TriggerAuthentication").values()
    targets = {t["parameter"]: t for t in authentication["spec"]["secretTargetRef"]}
    assert set(targets) == {"username", "password", "ca"}
    for each in of_kind("managed", "ScaledObject").values():
        for trigger in each["spec"]["triggers"]:
            assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
            assert trigger["metadata"]["sasl"] == "scram_sha512"
            assert trigger["metadata"]["tls"] == "enable"
    assert not of_kind("autoscaled", "TriggerAuthentication")


@pytest.mark.parametrize("values", SETS)
def test_jobs_run_before_the_services_and_in_their_order(values: str) -> None:
    jobs = of_kind(values, "Job")
    notes = {name: job["metadata"]["annotations"] for name, job in jobs.items()}
    assert all(note["helm.sh/hook"] == "pre-install,pre-upgrade" for note in notes.values())
    order = sorted(notes, key=lambda name: int(notes[name]["helm.sh/hook-weight"]))
    assert order == ["migrate", "topics", "first-key"]
    # What they stand on comes before them.
    for each in (*of_kind(values, "Secret").values(), of_kind(values, "ServiceAccount")["jobs"]):
        assert int(each["metadata"]["annotations"]["helm.sh/hook-weight"]) < -10


def test_the_gateway_answers_to_the_name_that_people_use() -> None:
    env = env_of(dict(pods("managed"))["gateway"])
    assert "sluice.example.org" in env["SLUICE_ALLOWED_HOSTS"]["value"].split(",")
    service = of_kind("managed", "Service")["ingest"]["metadata"]["name"]
    assert env["SLUICE_INGEST_URL"]["value"] == f"http://{service}:8081"
    assert env_of(dict(pods("managed"))["ingest"])["SLUICE_ALLOWED_HOSTS"]["value"] == service
