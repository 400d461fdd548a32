#!/bin/sh
# Makes .env from .env.example with new secrets. Never touches one that is there.
set -eu
cd "$(dirname "$0")/.."
if [ -e .env ]; then
    echo ".env is there already: nothing done" >&2
    exit 1
fi
umask 077
while IFS= read -r line; do
    case $line in
        '#'*) printf '%s\n' "$line" ;;
        *=) printf '%s%s\n' "$line" "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')" ;;
        *) printf '%s\n' "$line" ;;
    esac
done < .env.example > .env.new
mv .env.new .env
echo "made .env"
