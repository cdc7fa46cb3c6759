"""An S3 server that we did not write: moto's, as a process."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.conftest import free_port

SECONDS = 120
NAME = "sapa-files"


@contextmanager
def run_object_server() -> Iterator[str]:
    """The address of a bucket, as SAPA_FILES_URL takes it."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _create_bucket(f"http://127.0.0.1:{port}", process)
        yield f"http://key:secret%2F1@127.0.0.1:{port}/{NAME}/shop?region=us-east-1"
    finally:
        process.kill()
        process.wait()


def _create_bucket(address: str, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends and process.poll() is None:
        try:
            if httpx.put(f"{address}/{NAME}", timeout=120).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("the object server did not start")


def list_objects(bucket_url: str) -> list[str]:
    """The keys in the bucket, as the server itself lists them."""
    address = "http://" + bucket_url.partition("@")[2].partition("/")[0]
    listing = httpx.get(f"{address}/{NAME}?list-type=2", timeout=120).text
    return [part.partition("</Key>")[0] for part in listing.split("<Key>")[1:]]
