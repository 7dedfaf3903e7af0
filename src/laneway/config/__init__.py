"""Settings of one process.

settings.py   `Settings`, from code, environment, file and defaults
sources.py    reads files and variables
lanes.py      reads `LANEWAY_LANES` and `lanes`
"""
