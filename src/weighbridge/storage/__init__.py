"""Storage back ends: what a site keeps its data on; one per module, each with an object PLUGIN."""
