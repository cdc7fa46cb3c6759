"""`sapa serve`: everything that an installation runs."""

import sys

from sapa.cli.process_settings import Data, Host, Port, TlsCert, TlsKey, read_settings_with
from sapa.runtime import supervisor


def serve(
    port: Port = None, host: Host = None, data: Data = None, tls_cert: TlsCert = None, tls_key: TlsKey = None
) -> None:
    """Run everything: database, migrations, API and worker."""
    sys.exit(supervisor.serve(read_settings_with(port, host, data, tls_cert, tls_key)))
