"""The version, for the build and for everyone who asks."""

__version__ = "1.0.0rc1"
