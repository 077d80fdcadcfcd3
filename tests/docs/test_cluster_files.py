"""Files for clusters are sound, and their commands are ours."""

import json
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from onesided.cli import app

FILES = Path(__file__).parents[2] / "docs" / "cluster"


def read(name: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    return yaml.safe_load((FILES / name).read_text(encoding="utf-8"))


def options_of(command: str) -> set[str]:
    group = typer.main.get_command(app)
    words = group.commands[command].params  # type: ignore[attr-defined]
    return {
        option for parameter in words for option in (*parameter.opts, *parameter.secondary_opts)
    }


def test_the_cluster_file_is_one_that_ray_accepts() -> None:
    cluster = read("ray-cluster.yaml")
    assert cluster["head_node_type"] in cluster["available_node_types"]
    workers = cluster["available_node_types"]["worker"]
    assert workers["max_workers"] <= cluster["max_workers"]
    if find_spec("ray") is None:
        pytest.skip("pip install 'onesided[ray]', whose schema the file is checked against")
    ray = Path(str(find_spec("ray").origin)).parent  # type: ignore[union-attr]
    schema = json.loads((ray / "autoscaler" / "ray-schema.json").read_text(encoding="utf-8"))
    pytest.importorskip("jsonschema").validate(cluster, schema)


def test_the_job_of_kubernetes_runs_a_command_of_ours_on_a_disk_that_all_pods_see() -> None:
    job = read("ray-job.yaml")
    assert (job["kind"], job["apiVersion"]) == ("RayJob", "ray.io/v1")
    cluster = job["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        assert [volume["name"] for volume in pod["volumes"]] == ["shared"]
        for container in pod["containers"]:
            assert container["volumeMounts"] == [{"name": "shared", "mountPath": "/shared"}]
    words = shlex.split(job["spec"]["entrypoint"])
    assert words[0] == "onesided"
    assert {word for word in words if word.startswith("-")} <= options_of(words[1])
    cores = sum(
        group["replicas"]
        * int(group["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"])
        for group in cluster["workerGroupSpecs"]
    )
    assert words[words.index("--workers") + 1] == str(cores)


def test_the_script_of_slurm_is_a_shell_script_that_trains() -> None:
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("needs bash")
    script = FILES / "torchrun.sbatch"
    subprocess.run([shell, "-n", str(script)], check=True)
    text = script.read_text(encoding="utf-8").replace("\\\n", " ")
    words = shlex.split(text[text.index("-m onesided") :])
    assert {word for word in words[3:] if word.startswith("-")} <= options_of(words[2])
