"""Errors, report types, configuration, number formatting, URLs, host limits and calibration."""
