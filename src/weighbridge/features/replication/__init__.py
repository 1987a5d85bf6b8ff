"""Published studies: their figures as data, how they map to a run, and how well a run agrees with them."""

from weighbridge.cli.feature import Feature, FurtherPage

PAGE = "replication.html"
"""The name of the page in a run that compares it with a published study."""
FEATURE = Feature(
    commands={"replicate": "weighbridge.features.replication.options:REPLICATE"},
    after="run",
    documents={"replicate": "weighbridge.features.replication.document:ReplicationDocument"},
    pages=(FurtherPage(PAGE, "published and measured", "weighbridge.features.replication.command:further_page"),),
)
