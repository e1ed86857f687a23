"""What the worker says of itself as a process."""

import json
from pathlib import Path

import pytest
import yaml

from iii_contracts.harness.configuration import defaults
from iii_harness.manifest import manifest

ALLOWED = {
    "name",
    "scripts",
    "runtime",
    "env",
    "dependencies",
    "resources",
    "description",
    "iii",
    "deploy",
    "manifest",
    "tags",
}


@pytest.mark.requirement("prompt.manifest.flag")
def test_the_manifest_has_what_installers_read() -> None:
    made = manifest()
    assert set(made) == {"name", "version", "description", "default_config", "supported_targets"}
    assert made["name"] == "harness"
    assert made["default_config"] == defaults()
    json.dumps(made)


@pytest.mark.requirement("prompt.manifest.file")
def test_the_worker_manifest_is_clean_and_names_every_dependency() -> None:
    text = Path(__file__).parents[1].joinpath("iii.worker.yaml").read_text()
    made = yaml.safe_load(text)
    assert set(made) <= ALLOWED
    assert len(text) <= 65_536
    assert made["runtime"].keys() == {"base_image"}
    assert made["scripts"]["start"].startswith("exec ")
    assert "setup" not in made["scripts"]
    assert {
        "session-manager",
        "context-manager",
        "llm-router",
        "queue",
        "state",
        "cron",
        "configuration",
        "observability",
        "directory",
    } <= made["dependencies"].keys()
    assert made["name"] not in made["dependencies"]
