"""The HTTP API and the page: look up traces, call analyses, encode results.

`app.create_app` returns the app; `messages` defines the types of its responses.
"""
