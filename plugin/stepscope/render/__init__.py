"""A report as text for people and programs: `render(report)` in `text`, `markdown` and `json`."""
