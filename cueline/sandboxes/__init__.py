"""The back-ends of sandboxes, one module each; see `cueline.actors.sandbox_port`."""
