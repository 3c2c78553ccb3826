"""Providers: who makes and ends machines. A new one is one file beside these, and a name in `run_settings`."""
