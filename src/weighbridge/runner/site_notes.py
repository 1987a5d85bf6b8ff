"""What a run keeps of its sites once they are open: hypervisors, facts, paths, packet sizes."""

from weighbridge.facts.differences import about_hosts
from weighbridge.model import isolation
from weighbridge.model.study import Study
from weighbridge.runner.continuity import COMPANIONS, require_same_companions, require_same_layers
from weighbridge.runner.sites import Sites
from weighbridge.runner.study_facts import about_study, packet_sizes
from weighbridge.store.run import RunStore


def note_sites(store: RunStore, study: Study, sites: Sites) -> None:
    """Keep it. Raises RunDirectoryError where the run was begun in other hypervisors."""
    layers = sites.layers()
    require_same_layers(store, layers)
    store.add_facts(isolation.SCOPE, layers)
    for place, facts in sites.facts().items():
        store.add_facts(place, facts)
    for scope, facts in about_hosts(sites.hosts).items():
        store.add_facts(scope, facts)
    if sites.neighbourhood is not None:
        require_same_companions(store, sites.neighbourhood.images)
        store.add_facts(COMPANIONS, sites.neighbourhood.images)
    store.add_facts("path", sites.routes.paths())
    store.add_facts("packet sizes", packet_sizes(study, sites.endpoint_of))
    for scope, facts in about_study(study).items():
        store.add_facts(scope, facts)
