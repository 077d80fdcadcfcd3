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
