"""What can go wrong by the user's hand, each with one sentence a tired person can act on."""


class OnesidedError(Exception):
    """Bad input: the message says what was expected, what came, and what to do.

    The command line prints the message without a traceback and exits with `exit_code`.
    """

    exit_code = 2


class DataNotFound(OnesidedError):
    """Files that should be there are not, or hold nothing readable."""


class DataError(OnesidedError, ValueError):
    """Files, arrays or labels are there but do not say what they should."""


class ConfigError(OnesidedError, ValueError):
    """A setting has an unknown name or a value that cannot be."""


class CheckpointError(OnesidedError):
    """A checkpoint or model file is damaged, hostile, or belongs to another run."""


class FolderTaken(OnesidedError):
    """Another command is at work in the folder."""


class MissingLibrary(OnesidedError):
    """An optional library is needed and not there.

    Attributes:
        remedy: The command that installs it.
    """

    def __init__(self, problem: str, extra: str) -> None:
        self.remedy = f"pip install 'onesided[{extra}]'"
        super().__init__(f"{problem} Install the extra `{extra}`: {self.remedy}")


class TrainingFailed(OnesidedError):
    """Training produced a loss that is not a number; the message names the term."""


class DegenerateModel(OnesidedError):
    """The trained model calls everything, or nothing, positive."""

    exit_code = 3


class Interrupted(OnesidedError):
    """A signal asked for a stop; the state was saved and the same command resumes."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number

    def add_remedy(self, sentence: str) -> None:
        """Tell what else to mind when going on."""
        self.args = (f"{self} {sentence}",)


class ContractError(OnesidedError, TypeError):
    """A method broke one of the laws of the method contract."""


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, or its type if it says nothing."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
