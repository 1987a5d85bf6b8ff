"""Published studies: their figures as data, how they map to a run, and how well a run agrees with them."""

from weighbridge.cli.feature import Feature, FurtherPage
from weighbridge.features.replication.options import PAGE, REPLICATE

FEATURE = Feature(
    commands=(REPLICATE,),
    documents={"replicate": "weighbridge.features.replication.document:ReplicationDocument"},
    pages=(FurtherPage(PAGE, "published and measured", "weighbridge.features.replication.command:further_page"),),
)
