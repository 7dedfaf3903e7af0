"""Ontology generation behind web pages: `uvicorn accelerator.web:app` is one pod."""
