"""The iii worker eval: live comparison of sessions and durable same-model A/B prompt experiments."""
