"""What onnxruntime says of the package and of the system."""
from selkie.ort.module import VERSION


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """The package's name, its version, and that of CUDA."""
    return "selkie", VERSION, ""


def check_distro_info() -> None:
    """The wheel says what systems it is for."""


def check_training_module() -> tuple[bool, str, str, str]:
    """Nothing is trained here."""
    return False, *get_package_name_and_version_info()
