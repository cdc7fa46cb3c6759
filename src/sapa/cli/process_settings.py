"""Options that `sapa serve` and its parts share, and the settings they override."""

import os
from pathlib import Path
from typing import Annotated

import typer

from sapa.runtime.processes import CannotStart
from sapa.settings import Settings, read_settings

Port = Annotated[int | None, typer.Option(help="The port to listen on (SAPA_PORT, 8000).")]
Host = Annotated[str | None, typer.Option(help="The address to listen on (SAPA_HOST, 127.0.0.1).")]
Data = Annotated[Path | None, typer.Option(help="The data folder (SAPA_DATA, ./data).")]
TlsCert = Annotated[Path | None, typer.Option(help="Certificate chain, to serve HTTPS (SAPA_TLS_CERT).")]
TlsKey = Annotated[Path | None, typer.Option(help="The certificate's private key (SAPA_TLS_KEY).")]


def read_settings_with(
    port: int | None, host: str | None, data: Path | None, tls_cert: Path | None, tls_key: Path | None
) -> Settings:
    """Options override variables; they are set as variables for the child processes too."""
    options = {"PORT": port, "HOST": host, "DATA": data, "TLS_CERT": tls_cert, "TLS_KEY": tls_key}
    os.environ.update({f"SAPA_{name}": str(value) for name, value in options.items() if value is not None})
    return read_settings()


def get_database_url(settings: Settings) -> str:
    if settings.database.url is None:
        raise CannotStart("Set SAPA_DATABASE_URL, or use `sapa serve`, which starts the embedded database.")
    return settings.database.url
