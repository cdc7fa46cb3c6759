"""The alerts and the dashboard name metrics that a server has, and the alerts fire when they should."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from prometheus_client.metrics import MetricWrapperBase

from sapa.http import metrics as http_metrics
from sapa.work import metrics as work_metrics
from tests.conftest import Installation

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "sapa.rules.yml"
NAME = re.compile(r"\bsapa_[a-z_]+\b")
NEEDS_PROMTOOL = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
OLDER_NAMES = {"sapa_counter_oldest_seconds", "sapa_counter_waiting"}
"""They have the name of a type in them, and stay because operators use them."""
NOT_AT_THE_START = {"sapa_backup_age_seconds", "sapa_backup_failed", "sapa_worker_unseen_seconds"}


def list_served(installation: Installation) -> set[str]:
    """What the server has now, and the samples of metrics that nothing was counted in yet."""
    found = set(NAME.findall(httpx.get(installation.metrics, timeout=120).text)) | NOT_AT_THE_START
    metrics = [*vars(http_metrics).values(), *vars(work_metrics).values()]
    for metric in (each for each in metrics if isinstance(each, MetricWrapperBase)):
        found |= {f"{family.name}{ending}" for family in metric.describe() for ending in ("_total", "_bucket")}
    return found


def test_alerts_and_dashboard_name_metrics_of_the_server(installation: Installation) -> None:
    dashboard = (DEPLOY / "grafana" / "sapa.json").read_text()
    assert json.loads(dashboard)["title"] == "Sapa"
    named = {*NAME.findall(RULES.read_text()), *NAME.findall(dashboard)}
    assert len(named) > 12
    assert named - list_served(installation) == set()


@NEEDS_PROMTOOL
def test_the_alerts_fire_when_they_should() -> None:
    for command in (["check", "rules", RULES], ["test", "rules", DEPLOY / "prometheus" / "sapa.tests.yml"]):
        done = subprocess.run(["promtool", *map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@NEEDS_PROMTOOL
def test_the_names_of_metrics_are_as_prometheus_wants_them(installation: Installation) -> None:
    text = httpx.get(installation.metrics, timeout=120).text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert {line.partition(" ")[0] for line in done.stderr.splitlines()} <= OLDER_NAMES, done.stderr
