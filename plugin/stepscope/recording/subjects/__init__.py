"""The subjects of the settings: functions from a `Scene` to what is known of it.

`known` is how they ask: each field on its own, and what fails or is None is left out.
"""
