"""The modules of a recording, and what ran for one of them."""

from stepscope.api.endpoint import Endpoint, TraceEndpoint
from stepscope.api.modules import (
    Modules,
    ModulesQuery,
    ModuleWork,
    ModuleWorkQuery,
    modules,
    work,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    TraceEndpoint(
        path="modules",
        meaning="Modules by instance, as a tree, or by class: forward and backward, host, device.",
        query=ModulesQuery,
        response=Modules,
        handler=modules,
        is_whole=True,
    ),
    TraceEndpoint(
        path="modules/work",
        meaning="The operators and the device work that ran for a module.",
        query=ModuleWorkQuery,
        response=ModuleWork,
        handler=work,
    ),
)
