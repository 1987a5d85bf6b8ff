"""Where a userland comes from: one source per module, each with an object PLUGIN."""
