"""The HTTP API and the page: look up, call, encode. Nothing is worked out here.

`app.create_app` is the whole; `messages` are its answers' types.
"""
