"""`laneway remote-worker`"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from laneway.cli.process_options import App, takes_worker_options


@takes_worker_options
def remote_worker(
    app: App,
    server: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            envvar="LANEWAY_GRPC_SERVER",
            help="A server started with --grpc; several, separated by commas, are tried in turn.",
        ),
    ],
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="LANEWAY_TOKEN",
            help="Token of a principal that may claim. Prefer the variable or LANEWAY_TOKEN_FILE: "
            "others can read arguments.",
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="LANEWAY_TOKEN_FILE",
            help="A file with the token; read again at each connection.",
        ),
    ] = None,
    tls_ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="LANEWAY_GRPC_CA",
            help="Certificates to trust (PEM) instead of the system's.",
        ),
    ] = None,
    plaintext: Annotated[
        bool,
        typer.Option(
            "--plaintext",
            envvar="LANEWAY_GRPC_PLAINTEXT",
            help="Skip TLS even to another host: others can read the token and the jobs.",
        ),
    ] = False,
    *,
    options: dict[str, Any],
) -> None:
    """Run jobs of a server with the handlers of APP, without database access, until stopped."""
    from laneway.app.remote_worker import make_endpoint, run_remote_worker

    if token is not None:
        # Supervised processes inherit it; arguments would be readable by others.
        os.environ["LANEWAY_TOKEN"] = token
    endpoint = make_endpoint(
        server, token or None, token_file=token_file, tls_ca=tls_ca, plaintext=plaintext
    )
    passed_on = [
        f"--server={server}",
        *([] if token_file is None else [f"--token-file={token_file}"]),
        *([] if tls_ca is None else [f"--tls-ca={tls_ca}"]),
        *(["--plaintext"] if plaintext else []),
    ]
    raise typer.Exit(run_remote_worker(app, endpoint, options=passed_on, **options))
