"""The version, for the build and for everyone who asks."""

__version__ = "0.1.0"
