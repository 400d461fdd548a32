"""What the chunker reads from the environment."""

from libs.service.settings import PlatformSettings


class ChunkerSettings(PlatformSettings):
    """Nothing of its own: sizes come from each document's chunk plan."""
