"""Shared settings and scaffolding of a process."""
