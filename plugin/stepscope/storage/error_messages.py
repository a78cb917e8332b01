"""What went wrong with remote storage, in words: each library has errors of its own.

They are told apart by the names of their classes and by the codes of the servers, along the whole
chain of causes, so that none of the libraries has to be imported.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stepscope.base import urls
from stepscope.base.errors import UnreadableError

EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "az"),
    **dict.fromkeys(("http", "https"), "http"),
    "hdfs": "hdfs",
}
"""Which extra of stepscope brings what reads a kind of address."""
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
"""Characters of an error's own words."""

PACKAGE = frozenset({"ImportError"})
UNKNOWN = frozenset({"Protocol not known"})
NO_CREDENTIALS = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "ProfileNotFound",
        "TokenRetrievalError",
        "SSOTokenLoadError",
        "UnauthorizedSSOTokenError",
        "DefaultCredentialsError",
        "CredentialUnavailableError",
        "DefaultAzureCredential failed to retrieve a token",
        "Must provide either a connection_string",  # adlfs
    }
)
NO_HADOOP = frozenset({"Unable to load lib", "Prior attempt to load lib"})
NO_BUCKET = frozenset(
    {"NoSuchBucket", "InvalidBucketName", "ParamValidationError", "ContainerNotFound"}
)
DENIED = frozenset({"PermissionError", "ClientAuthenticationError", "401", "403", "Forbidden"})
NO_SERVER = frozenset(
    {
        "ConnectionError",
        "TimeoutError",
        "ClientConnectionError",
        "ClientPayloadError",
        "HTTPClientError",
        "IncompleteRead",
        "ServiceRequestError",
        "ServiceResponseError",
        "TransportError",
        "gaierror",
    }
)
CHANGED = frozenset({"FileExpired", "PreconditionFailed", "412"})
FAILED = frozenset({"429", "500", "502", "503", "504", "SlowDown", "InternalError"})
ABSENT = frozenset({"FileNotFoundError", "ResourceNotFoundError", "404"})
SAYINGS = (
    "Protocol not known",
    "DefaultAzureCredential failed to retrieve a token",
    "Must provide either a connection_string",
    "Unable to load lib",
    "Prior attempt to load lib",
    "Forbidden",
)
"""How errors begin that neither a class nor a code tells apart."""


@dataclass(frozen=True, kw_only=True)
class _Failure:
    """What a sentence about an error is made of."""

    path: str
    said: str
    """The error's own words, in one line and without secrets."""

    @property
    def kind(self) -> str:
        return urls.scheme(self.path)

    @property
    def extra(self) -> str:
        return EXTRAS.get(self.kind, "")

    @property
    def bucket(self) -> str:
        return urls.bucket(urls.redacted(self.path))

    @property
    def is_bucket(self) -> bool:
        place = self.path.partition("://")[2].rstrip("/")
        return self.extra in BUCKETS and "/" not in place


Sentences = tuple[str, str]
"""What is wrong, and what to do."""


def _package(failure: _Failure) -> Sentences:
    message = f"The package that reads {failure.kind}:// is not installed."
    remedy = f"pip install 'stepscope[{failure.extra}]'" if failure.extra else f"{failure.said}."
    return message, remedy


def _unknown(failure: _Failure) -> Sentences:
    message = f"Nothing here reads addresses that begin with {failure.kind}://."
    return message, "Give a folder, or s3://, gs://, az://, abfs://, hdfs:// or https://."


def _no_credentials(failure: _Failure) -> Sentences:
    message = f"There are no credentials for {failure.bucket!r}: {failure.said}."
    return message, CREDENTIALS.get(failure.extra, "Give them in fsspec's configuration.")


def _no_hadoop(failure: _Failure) -> Sentences:
    message = f"Hadoop's own library cannot be loaded: {failure.said}."
    return message, "Install Java and Hadoop; set JAVA_HOME, HADOOP_HOME and CLASSPATH."


def _no_bucket(failure: _Failure) -> Sentences:
    return f"There is no bucket {failure.bucket!r}.", "Check its name, and AWS_PROFILE or the like."


def _denied(failure: _Failure) -> Sentences:
    message = f"Access to {failure.bucket!r} is denied: {failure.said}."
    return message, CREDENTIALS.get(failure.extra, "Check the credentials.")


def _no_server(failure: _Failure) -> Sentences:
    message = f"The server of {failure.bucket!r} does not answer: {failure.said}."
    endpoint = "AWS_ENDPOINT_URL" if failure.extra == "s3" else "the address"
    return message, f"Check the network and {endpoint}."


def _changed(_: _Failure) -> Sentences:
    return "The file was replaced while it was read.", "Read it again."


def _failed(failure: _Failure) -> Sentences:
    return f"The server of {failure.bucket!r} fails: {failure.said}.", "Try again later."


def _absent(failure: _Failure) -> Sentences:
    if failure.is_bucket:
        return _no_bucket(failure)
    return "There is no such file or folder.", "Check the address."


def _other(failure: _Failure) -> Sentences:
    return f"This cannot be read: {failure.said}.", "Check the address."


TELLERS: tuple[tuple[frozenset[str], Callable[[_Failure], Sentences]], ...] = (
    (PACKAGE, _package),
    (UNKNOWN, _unknown),
    (NO_CREDENTIALS, _no_credentials),
    (NO_HADOOP, _no_hadoop),
    (NO_BUCKET, _no_bucket),
    (DENIED, _denied),
    (NO_SERVER, _no_server),
    (CHANGED, _changed),
    (FAILED, _failed),
    (ABSENT, _absent),
)
"""From the most telling to the least: libraries say `not found` for many an error that is none."""


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Turn whatever a library raises into an `UnreadableError` of this path."""
    try:
        yield
    except UnreadableError:
        raise
    except Exception as error:
        # A cause may hold the secrets that the message leaves out, and `--traceback` shows it.
        cause = error if urls.redacted(path) == path else None
        raise problem(path, error) from cause


def problem(path: str, error: Exception) -> UnreadableError:
    """Return what an error means to whoever gave the path."""
    chain = tuple(_chain(error))
    for known, teller in TELLERS:
        for each in chain:
            if known & _marks(each):
                return UnreadableError(path, *teller(_Failure(path=path, said=_said(path, each))))
    return UnreadableError(path, *_other(_Failure(path=path, said=_said(path, error))))


def is_absence(path: str, error: Exception) -> bool:
    """Tell whether an error says no more than that nothing is there, in a bucket that is."""
    marks = frozenset[str]().union(*map(_marks, _chain(error)))
    first = next((teller for known, teller in TELLERS if known & marks), None)
    return first is _absent and not _Failure(path=path, said="").is_bucket


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _marks(error: BaseException) -> frozenset[str]:
    """Return the names and codes by which an error may be known."""
    names = {kind.__name__ for kind in type(error).__mro__}
    own = vars(error)  # no properties: some warn that they are out of date
    codes = {str(own.get(name, "")) for name in ("status", "status_code", "code", "error_code")}
    response = own.get("response")
    if isinstance(response, dict):  # botocore's
        codes.add(str(response.get("Error", {}).get("Code", "")))
    return frozenset(names | codes | {each for each in SAYINGS if str(error).startswith(each)})


def _said(path: str, error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    if not lines:
        return "it took too long" if isinstance(error, TimeoutError) else type(error).__name__
    return urls.redacted(lines[0], path)[:LONGEST].rstrip(".! ")
