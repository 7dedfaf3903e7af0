"""The two backends of a command: a database, or a server.

database.py   through laneway.control, as the account that runs the program
server.py     through laneway.http, as the owner of the token

Both have the same methods and return the same domain values.
"""
