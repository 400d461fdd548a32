"""A set's documents, uploaded into a knowledge domain of their own."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from services.cli.client import Client
from services.cli.errors import CliError, ExitCode
from services.cli.evaluation.sets import QuestionSet
from services.cli.uploads import Upload, upload_all


@dataclass(frozen=True, slots=True)
class Library:
    """What can be searched: a domain, and which files each of its documents came from."""

    domain: str
    files: Mapping[str, Sequence[str]]  # file names by document id; equal files are one document


async def prepare(
    client: Client, question_set: QuestionSet, changed: Callable[[list[Upload]], None]
) -> Library:
    """Upload what is missing and wait until all of the set can be searched.

    Raises: CliError when a file cannot be read, or is a document of another domain already:
    figures over half a library would mislead.
    """
    domain = f"eval-{question_set.name}"
    files = list(question_set.files.values())
    uploads = await upload_all(client, files, {"domain": domain}, wait=True, changed=changed)
    names = defaultdict(list)
    for upload in uploads:
        if upload.state != "indexed":
            problem = f"{upload.file.name}: {upload.state} {upload.reason}".rstrip()
            raise CliError(f"the set is not searchable: {problem}", ExitCode.FAILED)
        if upload.document["domain"] != domain:
            problem = (
                f"{upload.file.name} is in the domain {upload.document['domain'] or '(none)'!r} "
                "already; evaluate with the key of a tenant of its own (sluice keys create)"
            )
            raise CliError(problem, ExitCode.USAGE)
        names[str(upload.document["id"])].append(upload.file.name)
    return Library(domain, names)
