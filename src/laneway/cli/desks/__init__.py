"""Where a command's verbs are done: in a database, or by a server.

database.py   through laneway.control, as whoever runs the program
server.py     through laneway.http, as whoever the token belongs to

Both have the same verbs and answer the same domain values; commands see no more than that.
"""
