"""Object stores behind `libs.storage.ports.ObjectStore`."""

from libs.storage.objects.disk import DiskObjectStore

__all__ = ["DiskObjectStore"]
