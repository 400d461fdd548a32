"""The images and the Compose file, run: built and started by podman and the real Compose program.

Needs Linux, root, and podman with runc and netavark; where the base image can't be pulled, also
debootstrap, which makes a local stand-in under the same tag (Debian's packages: podman runc
netavark aardvark-dns catatonit iptables debootstrap). The first run takes minutes; images are kept
in the cache of `tests.servers`. `make images-test` runs it, `make test` does not.
"""
