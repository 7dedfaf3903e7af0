"""The commands of `manage.py`, by the names of their modules.

laneway.py         the command `laneway` on the database of the tasks
laneway_worker.py  runs tasks
"""
