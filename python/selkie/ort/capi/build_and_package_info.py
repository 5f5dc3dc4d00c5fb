"""The package's name and version."""
from selkie.ort.module import VERSION as __version__

package_name = "selkie"
