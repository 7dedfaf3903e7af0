"""Laneway inside other people's frameworks, one module each.

fastapi.py     a worker with the lifespan of a FastAPI or Starlette application
signals.py     hears of the end when the process is told

Uses client and wiring; nothing uses it.
"""
