"""Messages and remedies for errors of remote storage.

The libraries' errors are recognized by class names and server codes along the whole chain of
causes, so no library needs to be imported.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from stepscope.base import urls
from stepscope.base.errors import UnreadableError

EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "az"),
    **dict.fromkeys(("http", "https"), "http"),
    "hdfs": "hdfs",
}
"""Extra of stepscope that reads a scheme."""
CREDENTIALS = {
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; "
    "FSSPEC_S3_ANON=true reads a public bucket.",
    "gs": "Set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`; "
    "FSSPEC_GS_TOKEN=anon reads a public bucket.",
    "az": "Set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and "
    "AZURE_STORAGE_ACCOUNT_KEY; AZURE_STORAGE_ANON=true reads a public container.",
}
BUCKETS = ("s3", "gs", "az")
LONGEST = 200
"""Maximum length of a library's message as shown."""

MESSAGE_STARTS = (
    "Protocol not known",
    "DefaultAzureCredential failed to retrieve a token",
    "Must provide either a connection_string",
    "Unable to load lib",
    "Prior attempt to load lib",
    "Forbidden",
)
"""Beginnings of messages of errors without a distinct class or code."""
NO_BUCKET = (
    "There is no bucket {bucket}.",
    "Check its name and the credentials, such as AWS_PROFILE.",
)
ABSENT = ("There is no such file or folder.", "Check the address.")
OTHER = ("This cannot be read: {reason}.", "Check the address.")
MEANINGS: tuple[tuple[str, tuple[str, str]], ...] = (
    ("ImportError", ("The package that reads {kind}:// is not installed.", "{install}")),
    (
        "Protocol not known",
        (
            "stepscope cannot read addresses that begin with {kind}://.",
            "Pass a folder, or s3://, gs://, az://, abfs://, hdfs:// or https://.",
        ),
    ),
    (
        "NoCredentialsError|PartialCredentialsError|CredentialRetrievalError|ProfileNotFound"
        "|TokenRetrievalError|SSOTokenLoadError|UnauthorizedSSOTokenError|DefaultCredentialsError"
        "|CredentialUnavailableError|DefaultAzureCredential failed to retrieve a token"
        "|Must provide either a connection_string",  # adlfs
        ("There are no credentials for {bucket}: {reason}.", "{credentials}"),
    ),
    (
        "Unable to load lib|Prior attempt to load lib",
        (
            "Hadoop's own library cannot be loaded: {reason}.",
            "Install Java and Hadoop; set JAVA_HOME, HADOOP_HOME and CLASSPATH.",
        ),
    ),
    ("NoSuchBucket|InvalidBucketName|ParamValidationError|ContainerNotFound", NO_BUCKET),
    (
        "PermissionError|ClientAuthenticationError|401|403|Forbidden",
        ("Access to {bucket} is denied: {reason}.", "{credentials}"),
    ),
    (
        "ConnectionError|TimeoutError|ClientConnectionError|ClientPayloadError|HTTPClientError"
        "|IncompleteRead|ServiceRequestError|ServiceResponseError|TransportError|gaierror",
        (
            "The server of {bucket} does not answer: {reason}.",
            "Check the network and {endpoint}.",
        ),
    ),
    (
        "FileExpired|PreconditionFailed|412",
        ("The file was replaced while it was read.", "Read it again."),
    ),
    (
        "429|500|502|503|504|SlowDown|InternalError",
        ("The server of {bucket} fails: {reason}.", "Try again later."),
    ),
    ("FileNotFoundError|ResourceNotFoundError|404", ABSENT),
)
"""Marks of errors, with message and remedy; the most specific first, since libraries report many
errors as `not found`.
"""


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Convert the errors of all libraries into an `UnreadableError` of this path."""
    try:
        yield
    except UnreadableError:
        raise
    except Exception as error:
        # A cause may contain the secrets that the message omits, and `--traceback` prints it.
        cause = error if urls.redacted(path) == path else None
        raise problem(path, error) from cause


def problem(path: str, error: Exception) -> UnreadableError:
    """Return an error as a message and a remedy for the user."""
    chain = tuple(_chain(error))
    for marks, meaning in MEANINGS:
        for link in chain:
            if _marks(link) & set(marks.split("|")):
                return _problem(path, link, meaning)
    return _problem(path, error, OTHER)


def _problem(path: str, error: BaseException, meaning: tuple[str, str]) -> UnreadableError:
    kind, reason = urls.scheme(path), _reason(path, error)
    extra = EXTRAS.get(kind, "")
    if meaning is ABSENT and _is_bucket(path):
        meaning = NO_BUCKET
    fields = {
        "kind": kind,
        "reason": reason,
        "bucket": repr(urls.bucket(urls.redacted(path))),
        "install": f"pip install 'stepscope[{extra}]'" if extra else f"{reason}.",
        "credentials": CREDENTIALS.get(extra, "Give credentials in fsspec's configuration."),
        "endpoint": "AWS_ENDPOINT_URL" if extra == "s3" else "the address",
    }
    message, remedy = (text.format_map(fields) for text in meaning)
    return UnreadableError(path, message, remedy)


def _is_bucket(path: str) -> bool:
    return EXTRAS.get(urls.scheme(path)) in BUCKETS and "/" not in (
        path.partition("://")[2].rstrip("/")
    )


def is_absence(path: str, error: Exception) -> bool:
    """Return whether an error only means that nothing exists at a path of an existing bucket."""
    error_marks = frozenset[str]().union(*map(_marks, _chain(error)))
    meanings = (meaning for marks, meaning in MEANINGS if error_marks & set(marks.split("|")))
    return next(meanings, None) is ABSENT and not _is_bucket(path)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _marks(error: BaseException) -> frozenset[str]:
    """Return the class names, codes and message starts of an error."""
    names = {kind.__name__ for kind in type(error).__mro__}
    fields = vars(error)  # no properties: some warn that they are deprecated
    codes = {str(fields.get(name, "")) for name in ("status", "status_code", "code", "error_code")}
    response = fields.get("response")
    if isinstance(response, dict):  # botocore's
        codes.add(str(response.get("Error", {}).get("Code", "")))
    starts = {start for start in MESSAGE_STARTS if str(error).startswith(start)}
    return frozenset(names | codes | starts)


def _reason(path: str, error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    if not lines:
        return "it took too long" if isinstance(error, TimeoutError) else type(error).__name__
    return urls.redacted(lines[0], path)[:LONGEST].rstrip(".! ")
