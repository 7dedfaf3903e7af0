"""An API that ingests documents in the background: `uvicorn workbench.api:app` is one replica."""
