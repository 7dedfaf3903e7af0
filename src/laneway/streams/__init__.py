"""Live events: one reader of the event log serves every open stream of this process.

event_reader.py   reads each event once, in commit order
hub.py            passes events to the streams that want them. Start here.
stream.py         one open stream: the events it wants, and its unsent frames
frames.py         events as text/event-stream
debounce.py       one call for many triggers

Imports store, config, domain and errors; api turns a stream into an HTTP response.
"""
