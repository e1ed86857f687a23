"""What the worker says of itself as a process, and to installers."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from iii_eval.cli import main
from iii_eval.manifest import REGISTRY_VERSION, manifest

WORKER = Path(__file__).parents[1]


@pytest.mark.requirement("eval.manifest.flag")
def test_the_manifest_flag_prints_json_and_connects_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--manifest"])
    printed = json.loads(capsys.readouterr().out)
    assert printed == manifest()
    assert printed["name"] == "eval"
    assert printed["version"] == version("iii-eval")
    assert printed["default_config"] == {}
    assert printed["description"]
    assert printed["supported_targets"]
    with pytest.raises(SystemExit) as ended:
        main(["--unknown"])
    assert ended.value.code == 2


@pytest.mark.requirement("eval.manifest.version")
def test_the_published_version_is_stated_beside_that_of_the_package() -> None:
    project = tomllib.loads(WORKER.joinpath("pyproject.toml").read_text())
    assert project["tool"]["iii"]["registry-version"] == REGISTRY_VERSION == "0.2.2-experimental"
    assert project["project"]["version"] == "0.2.2.dev0"
    assert project["project"]["license"] == "Apache-2.0"
    assert manifest()["registry_version"] == REGISTRY_VERSION


@pytest.mark.requirement("eval.manifest.file")
def test_the_worker_manifest_is_what_the_specification_lists() -> None:
    made = yaml.safe_load(WORKER.joinpath("iii.worker.yaml").read_text())
    assert made["iii"] == "v1"
    assert made["name"] == "eval"
    assert made["tags"] == ["evaluation", "benchmark", "sessions", "metrics", "prompt", "system-prompt"]
    assert made["dependencies"] == {
        "state": "0.x",
        "queue": "^0.2.0",
        "cron": "^0.21.0",
        "iii-observability": "^0.21.6",
    }
    assert set(made) == {
        "iii",
        "name",
        "description",
        "deploy",
        "manifest",
        "tags",
        "runtime",
        "scripts",
        "resources",
        "dependencies",
    }
    assert set(made["runtime"]) == {"base_image"}
    assert set(made["scripts"]) == {"install", "start"}
    assert made["scripts"]["start"].startswith("exec ")
