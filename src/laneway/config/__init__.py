"""Settings of one process.

settings.py       `Settings`, from code, environment, file and defaults
sources.py        reads files and variables
service_links.py  recognizes variables that Kubernetes sets
project.py        finds the project of the working directory
lanes.py          reads `LANEWAY_LANES` and `lanes`
"""
