"""The settings of the run, as stepscope's trace handler recorded them."""

from stepscope.analyses.settings.setting_rows import SETTINGS, settings_table
from stepscope.tables import Table

TABLE = Table(
    title="Recorded settings",
    meaning=(
        "One row a setting of the run that `stepscope.trace_handler` recorded: of its loaders, "
        "precision, optimizers, devices and the like. What is not there is not known."
    ),
    schema=SETTINGS,
    build=settings_table,
)
