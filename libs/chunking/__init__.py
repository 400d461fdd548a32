"""Cutting parsed documents into parents and children by a chunk plan."""
