"""The directory in which Django finds commands.

commands/    the commands of `manage.py`
"""
