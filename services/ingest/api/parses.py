"""What the object store holds of a generation's parse."""

from libs.storage.keys import generation_prefix, parsed_key, text_key
from libs.storage.ports import ObjectStore

Generation = tuple[str, str, int]  # tenant, document id, generation


async def is_stored(objects: ObjectStore, of: Generation) -> bool:
    """Whether the parse is there and whole. Raises: TransientError."""
    return {parsed_key(*of), text_key(*of)} <= set(await objects.keys(generation_prefix(*of)))
