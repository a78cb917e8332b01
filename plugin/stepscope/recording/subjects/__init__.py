"""The subjects of the settings: functions from a `Scene` to settings.

`fields` reads each field on its own, and leaves out those that fail or are None.
"""
