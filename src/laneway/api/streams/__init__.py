"""Live events: one reader of the event log feeds every open stream of this process.

event_reader.py   reads each event once, in commit order
hub.py, debounce.py   passes events to the streams that want them
stream.py, frames.py, event_response.py   one stream, as text/event-stream
"""
