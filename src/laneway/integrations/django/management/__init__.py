"""Where Django looks for commands.

commands/    the commands of `manage.py`
"""
