"""`sapa serve`: everything that an installation runs."""

import sys

from sapa.app import prepare
from sapa.cli import main, run, shared_metrics  # noqa: F401 - `run` imports everything that the forked processes need
from sapa.cli.process_settings import Data, Host, Port, TlsCert, TlsKey, read_settings_with
from sapa.runtime import supervisor
from sapa.runtime.fork_server import start_fork_server


def serve(
    port: Port = None, host: Host = None, data: Data = None, tls_cert: TlsCert = None, tls_key: TlsKey = None
) -> None:
    """Run everything: database, migrations, API and worker."""
    settings = read_settings_with(port, host, data, tls_cert, tls_key)
    shared_metrics.drop_folder()
    prepare()
    with start_fork_server(main) as forks:
        sys.exit(supervisor.serve(settings, forks))
