"""Flame graphs: trees of calls merged by name, of any measure, and what can be asked of them.

`tree` is what they have in common; `calls`, `modules` and `memory` make them of a recording;
`callers`, `drawn`, `functions` and `aligned` are questions, which know no recording.
"""
