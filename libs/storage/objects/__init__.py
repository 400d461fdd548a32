"""Object stores behind `libs.storage.ports.ObjectStore`; `s3` is imported by who needs it."""

from libs.storage.objects.disk import DiskObjectStore

__all__ = ["DiskObjectStore"]
