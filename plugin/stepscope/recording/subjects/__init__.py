"""The subjects of the settings: functions from a `Scene` to settings.

`fields` reads each field separately, and omits those that fail or are None.
"""
