"""The API's endpoints, a subject a file: `endpoints/<name>.py` with a tuple `ENDPOINTS`.

Adding a file adds its routes, its part of the OpenAPI document and its types in the page.
"""
