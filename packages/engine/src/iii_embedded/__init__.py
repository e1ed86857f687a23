"""The embedded iii engine: wire protocol, registry, triggers, state, configuration, cron, channels, in-process bus."""
