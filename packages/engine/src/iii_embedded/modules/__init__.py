"""The built-in modules of the engine: state, configuration, cron, publish and subscribe."""
